"""Chat templates with one real fault each, cut from the model's own template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tokenizer_checks.blame import Layer


def _drop_generation_prompt(template: str) -> str:
    """``add_generation_prompt`` has no effect, as when a gateway filters the flag out."""
    return re.sub(r"\{% if add_generation_prompt %\}.*?\{% endif %\}", "", template, flags=re.DOTALL)


def _drop_default_system(template: str) -> str:
    """The system turn that the model was trained with is not added."""
    return re.sub(r"\{% if loop\.first and .*?\{% endif %\}", "", template, flags=re.DOTALL)


def _double_bos(template: str) -> str:
    """The template writes the first token, and something before it writes it as well."""
    return "{{ bos_token }}" + template


def _other_default_system(template: str) -> str:
    """The default system prompt of another model."""
    return template.replace("named SmolLM, trained by Hugging Face", "made by a provider")


def _ignore_system(template: str) -> str:
    """What the caller sets as the system prompt never reaches the model."""
    return "{% set messages = messages | rejectattr('role', 'equalto', 'system') | list %}" + template


def _date_added(template: str) -> str:
    """The system turn ends with a date that stopped moving."""
    return template.replace("by Hugging Face", "by Hugging Face\nToday Date: 26 Jul 2024")


def _trimmed(template: str) -> str:
    """White space at the ends of a message is lost."""
    return template.replace("message['content']", "message['content'] | trim")


def _newline_lost(template: str) -> str:
    """The line break between turns is lost."""
    return template.replace("'<|im_end|>' + '\n'", "'<|im_end|>'")


def _turn_end_lost(template: str) -> str:
    """Turns are not closed by their marker."""
    return template.replace("+ '<|im_end|>' + '\n'", "+ '\n'")


def _last_turn_only(template: str) -> str:
    """Earlier turns are forgotten, and the system prompt is not."""
    system = "(messages | selectattr('role', 'equalto', 'system') | list)"
    return "{% set messages = " + system + " + messages[-1:] %}" + template


def _answers_dropped(template: str) -> str:
    """The model's own earlier answers are left out."""
    return "{% set messages = messages | rejectattr('role', 'equalto', 'assistant') | list %}" + template


def _always_thinks(template: str) -> str:
    """The answer's header opens a reasoning that nobody asked for."""
    return template.replace("<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n")


MUTATIONS: Mapping[str, Callable[[str], str]] = {
    "generation-prompt-dropped": _drop_generation_prompt,
    "default-system-dropped": _drop_default_system,
    "double-bos": _double_bos,
    "other-default-system": _other_default_system,
    "system-ignored": _ignore_system,
    "date-added": _date_added,
    "trimmed": _trimmed,
    "newline-lost": _newline_lost,
    "turn-end-lost": _turn_end_lost,
    "last-turn-only": _last_turn_only,
    "answers-dropped": _answers_dropped,
    "always-thinks": _always_thinks,
}

LAYERS: Mapping[str, Layer] = {
    "generation-prompt-dropped": Layer.SUFFIX,
    "default-system-dropped": Layer.SYSTEM,
    "double-bos": Layer.BOS,
    "other-default-system": Layer.SYSTEM,
    "system-ignored": Layer.SYSTEM,
    "date-added": Layer.DATE,
    "trimmed": Layer.WHITE_SPACE,
    "newline-lost": Layer.WHITE_SPACE,
    "turn-end-lost": Layer.EOS,
    "last-turn-only": Layer.TRUNCATION,
    "answers-dropped": Layer.HISTORY,
    "always-thinks": Layer.SUFFIX,
}
"""The layer that is to be blamed for each."""

SERVED = ("generation-prompt-dropped", "default-system-dropped", "double-bos")
"""Those for which a server of its own is started, to be judged by a whole night."""


def mutate(template: str, fault: str) -> str:
    """The template with ``fault``; fails when the surgery found nothing to cut."""
    mutated = MUTATIONS[fault](template)
    if mutated == template:
        raise ValueError(f"the model's template has nothing that {fault} could change")
    return mutated
