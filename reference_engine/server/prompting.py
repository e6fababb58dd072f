"""The token IDs a replica feeds its model, template faults included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reference_engine.models.codec import TokenCodec
from reference_engine.server.faults import Faults
from ringtrue.errors import ModelError

Messages = Sequence[Mapping[str, Any]]


def chat_ids(
    codec: TokenCodec,
    messages: Messages,
    tools: Messages | None,
    faults: Faults,
    *,
    generation_prompt: bool = True,
) -> tuple[int, ...]:
    """Return the IDs of a chat as this replica renders it.

    Raises:
        ModelError: the template refuses the messages, or the model has nothing for a fault to break.
    """
    generation_prompt = generation_prompt and not faults.drop_generation_prompt
    if faults.drop_default_system and messages[0]["role"] != "system":
        text = _without_default_system(codec, messages, tools, generation_prompt=generation_prompt)
    else:
        text = codec.render_text(messages, tools, generation_prompt=generation_prompt)
    return _begin(codec, codec.encode_prompt(text, add_special_tokens=False), faults)


def completion_ids(
    codec: TokenCodec, prompt: str | Sequence[int], faults: Faults, *, add_special_tokens: bool = True
) -> tuple[int, ...]:
    """Return the IDs of a prompt given as text or as IDs.

    Raises:
        ModelError: the model has no BOS for ``double_bos`` to double.
    """
    if isinstance(prompt, str):
        return _begin(codec, codec.encode_prompt(prompt, add_special_tokens=add_special_tokens), faults)
    return _begin(codec, tuple(prompt), faults)


def cut_context(ids: tuple[int, ...], faults: Faults) -> tuple[int, ...]:
    """Return what a silently truncating replica keeps of ``ids``: the end."""
    return ids if faults.truncate_context is None else ids[-faults.truncate_context :]


def require_breakable(codec: TokenCodec, faults: Faults) -> None:
    """Make sure that each template fault changes something with this model.

    Raises:
        ModelError: names the fault that could not be planted.
    """
    chat = [{"role": "user", "content": "x"}]
    if faults.drop_generation_prompt and (
        codec.render_text(chat, generation_prompt=False) == codec.render_text(chat)
    ):
        raise ModelError("the template has no generation prompt to drop", where="drop_generation_prompt")
    chat_ids(codec, chat, None, faults)


def _begin(codec: TokenCodec, ids: tuple[int, ...], faults: Faults) -> tuple[int, ...]:
    if not faults.double_bos:
        return ids
    if codec.bos_id is None:
        raise ModelError("the model has no BOS token to double", where="double_bos")
    return (codec.bos_id, *ids)


def _without_default_system(
    codec: TokenCodec, messages: Messages, tools: Messages | None, *, generation_prompt: bool
) -> str:
    """Render the chat with a system turn of our own and cut exactly that turn off."""
    system = {"role": "system", "content": "x"}
    turn = codec.render_text([system], generation_prompt=False)
    whole = codec.render_text([system, *messages], tools, generation_prompt=generation_prompt)
    default = codec.render_text(messages, tools, generation_prompt=generation_prompt)
    rest = whole.removeprefix(turn)
    bos = codec.bos_text
    if bos is not None and default.startswith(bos) and not rest.startswith(bos):
        rest = bos + rest
    if rest in (whole, default):
        raise ModelError("the template has no default system prompt to drop", where="drop_default_system")
    return rest
