"""The token IDs a replica feeds its model, template faults included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reference_engine.models.codec import TokenCodec
from reference_engine.server.faults import Faults
from ringtrue.errors import ModelError
from tokenizer_checks.templates.chat import Chat


def chat_ids(codec: TokenCodec, chat: Chat, faults: Faults) -> tuple[int, ...]:
    """Return the IDs of a chat as this replica renders it.

    Raises:
        ModelError: the template refuses the messages, or the model has nothing for a fault to break.
    """
    if faults.drop_generation_prompt:
        chat = replace(chat, generation_prompt=False)
    if faults.drop_default_system and chat.messages[0]["role"] != "system":
        text = _without_default_system(codec, chat)
    else:
        text = codec.render_chat(chat)
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
    chat = Chat(({"role": "user", "content": "x"},))
    if faults.drop_generation_prompt and (
        codec.render_chat(replace(chat, generation_prompt=False)) == codec.render_chat(chat)
    ):
        raise ModelError("the template has no generation prompt to drop", where="drop_generation_prompt")
    chat_ids(codec, chat, faults)


def _begin(codec: TokenCodec, ids: tuple[int, ...], faults: Faults) -> tuple[int, ...]:
    if not faults.double_bos:
        return ids
    if codec.bos_id is None:
        raise ModelError("the model has no BOS token to double", where="double_bos")
    return (codec.bos_id, *ids)


def _without_default_system(codec: TokenCodec, chat: Chat) -> str:
    """Render the chat with a system turn of our own and cut exactly that turn off."""
    system = {"role": "system", "content": "x"}
    turn = codec.render_chat(Chat((system,), generation_prompt=False, options=chat.options))
    whole = codec.render_chat(replace(chat, messages=(system, *chat.messages)))
    default = codec.render_chat(chat)
    rest = whole.removeprefix(turn)
    bos = codec.bos_text
    if bos is not None and default.startswith(bos) and not rest.startswith(bos):
        rest = bos + rest
    if rest in (whole, default):
        raise ModelError("the template has no default system prompt to drop", where="drop_default_system")
    return rest
