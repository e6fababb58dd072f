"""Lines of JSON in a corpus: token IDs, chats, or whole chat requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringtrue.errors import ModelError, UsageError
from ringtrue.wire.strict_json import parse_json

if TYPE_CHECKING:
    from reference_engine.models.codec import TokenCodec


def json_lines(path: Path, data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the place (``file:line``) and the JSON value of each line that is not blank.

    Raises:
        UsageError: a line is not JSON.
    """
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        value, failure = parse_json(decoded(line, where))
        if failure is not None:
            raise UsageError("the line is not JSON", where=where, remedy="Give one JSON value a line")
        yield where, value


def decoded(data: bytes, where: str) -> str:
    """Return the text in ``data``, a byte order mark left out.

    Raises:
        UsageError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"byte {error.start} is not UTF-8", where=where, remedy="Save the file as UTF-8"
        ) from error


def listed_ids(value: Any, where: str) -> Sequence[int]:
    """Return the IDs of a line: a bare list, or one under ``token_ids``.

    Raises:
        UsageError: it is neither.
    """
    ids = value.get("token_ids") if isinstance(value, dict) else value
    if not isinstance(ids, list) or not all(type(token_id) is int for token_id in ids):
        raise UsageError(
            "the line is no list of token IDs",
            where=where,
            remedy='Write {"token_ids": [1, 2, 3]} or [1, 2, 3], whole numbers only',
        )
    return ids


def rendered_ids(value: Any, where: str, *, codec: TokenCodec, generation_prompt: bool) -> Sequence[int]:
    """Return the IDs of a line with a chat, by the model's own template; a whole request is one too.

    Raises:
        UsageError: it is no chat, or the template refuses it.
    """
    messages = value.get("messages") if isinstance(value, dict) else None
    tools = value.get("tools") if isinstance(value, dict) else None
    if not _are_objects(messages) or not messages or not (tools is None or _are_objects(tools)):
        raise UsageError(
            "the line is no chat",
            where=where,
            remedy='Write {"messages": [{"role": "user", "content": "..."}], "tools": [...]}, tools optional',
        )
    if value.get("chat_template_kwargs"):
        raise UsageError(
            "chat_template_kwargs are not supported",
            where=where,
            remedy="Render the chat yourself and give its token IDs",
        )
    messages = [_flattened(message, where) for message in messages]
    try:
        return codec.render(messages, tools, generation_prompt=generation_prompt)
    except ModelError as error:
        raise UsageError(error.message, where=where, remedy="Give its token IDs instead") from error


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def _flattened(message: dict[str, Any], where: str) -> dict[str, Any]:
    """Join typed text parts with newlines, as servers do for templates that expect a string."""
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
            raise UsageError("only content parts of type text are supported", where=where)
        content = "\n".join(str(part.get("text", "")) for part in content)
    content = "" if content is None else content  # an answer that only calls tools
    if not isinstance(content, str) or not isinstance(message.get("role"), str):
        raise UsageError("a message has no role, or its content is no text", where=where)
    return {**message, "content": content}
