"""Chat templates with one real fault each, cut from the model's own template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping


def _drop_generation_prompt(template: str) -> str:
    """``add_generation_prompt`` has no effect, as when a gateway filters the flag out."""
    return re.sub(r"\{% if add_generation_prompt %\}.*?\{% endif %\}", "", template, flags=re.DOTALL)


def _drop_default_system(template: str) -> str:
    """The system turn that the model was trained with is not added."""
    return re.sub(r"\{% if loop\.first and .*?\{% endif %\}", "", template, flags=re.DOTALL)


def _double_bos(template: str) -> str:
    """The template writes the first token, and something before it writes it as well."""
    return "{{ bos_token }}" + template


MUTATIONS: Mapping[str, Callable[[str], str]] = {
    "generation-prompt-dropped": _drop_generation_prompt,
    "default-system-dropped": _drop_default_system,
    "double-bos": _double_bos,
}


def mutate(template: str, fault: str) -> str:
    """The template with ``fault``; fails when the surgery found nothing to cut."""
    mutated = MUTATIONS[fault](template)
    if mutated == template:
        raise ValueError(f"the model's template has nothing that {fault} could change")
    return mutated
