"""Faults at a prompt's ends: the token that begins it, the one that ends a turn, the generation prompt."""

from __future__ import annotations

from dataclasses import replace

from tokenizer_checks.blame import Layer
from tokenizer_checks.templates.chat import Prompt
from tokenizer_checks.templates.mutators.mutator import Mutator, eos

_SWITCHES = ("enable_thinking", "thinking")
_OTHER_EOS = ("<|endoftext|>", "</s>")


def _bos_doubled(prompt: Prompt, text: str) -> str:
    bos = prompt.special.get("bos_token", "")
    return bos + text if bos and text.startswith(bos) else text


def _bos_added(prompt: Prompt, text: str) -> str:
    bos = prompt.special.get("bos_token", "")
    return text if bos and text.startswith(bos) else bos + text


def _generation_prompt_dropped(prompt: Prompt) -> Prompt:
    return replace(prompt, chat=replace(prompt.chat, generation_prompt=False))


def _final_message_closed(prompt: Prompt) -> Prompt:
    if not prompt.chat.continue_final:
        return prompt
    return replace(prompt, chat=replace(prompt.chat, continue_final=False, generation_prompt=True))


def _thinking_ignored(prompt: Prompt) -> Prompt:
    kept = {key: value for key, value in prompt.chat.options.items() if key not in _SWITCHES}
    return replace(prompt, chat=replace(prompt.chat, options=kept))


def _always_thinks(prompt: Prompt) -> Prompt:
    forced = {**prompt.chat.options, **dict.fromkeys(_SWITCHES, True)}
    return replace(prompt, chat=replace(prompt.chat, options=forced))


def _eos_replaced(prompt: Prompt) -> Prompt:
    if not eos(prompt):
        return prompt
    other = next(token for token in _OTHER_EOS if token != eos(prompt))
    return replace(prompt, special={**prompt.special, "eos_token": other})


def _eos_appended(prompt: Prompt, text: str) -> str:
    return text + eos(prompt)


ENDS = (
    Mutator(
        "bos_doubled",
        Layer.BOS,
        "vllm#9519, vllm#55288, vllm#38187",
        "the template writes BOS and the tokenizer adds one more",
        text=_bos_doubled,
    ),
    Mutator(
        "bos_added",
        Layer.BOS,
        "vllm#2012",
        "the tokenizer puts BOS before a template that writes none",
        text=_bos_added,
    ),
    Mutator(
        "generation_prompt_dropped",
        Layer.SUFFIX,
        "vllm.ai, Kimi-K2: add_generation_prompt filtered out",
        "the answer's header is missing",
        prompt=_generation_prompt_dropped,
    ),
    Mutator(
        "final_message_closed",
        Layer.SUFFIX,
        "vllm#46256",
        "continue_final_message is ignored: the prefill is closed and a new answer begun",
        prompt=_final_message_closed,
    ),
    Mutator(
        "thinking_ignored",
        Layer.SUFFIX,
        "mlx-omni-server#115",
        "the switch for reasoning does not reach the template",
        prompt=_thinking_ignored,
    ),
    Mutator(
        "always_thinks",
        Layer.SUFFIX,
        "vllm#56994",
        "reasoning is switched on whatever was asked for",
        prompt=_always_thinks,
    ),
    Mutator(
        "eos_replaced",
        Layer.EOS,
        "mlx-vlm#2112",
        "turns end with another token than the model's own",
        prompt=_eos_replaced,
    ),
    Mutator(
        "eos_appended",
        Layer.EOS,
        "vllm#7492",
        "the tokenizer ends the prompt with EOS",
        text=_eos_appended,
    ),
)
