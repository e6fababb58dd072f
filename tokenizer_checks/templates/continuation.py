"""Leaves the last message of a chat open, as ``continue_final_message`` does in transformers."""

from __future__ import annotations

from typing import Any

from ringtrue.errors import ModelError

_MARK = "CONTINUE_FINAL_MESSAGE_TAG "  # ends in a space, so that a template that trims shows itself


def mark_final(messages: list[dict[str, Any]], name: str) -> str:
    """Put a mark behind the last message's text, in place; return that text.

    Raises:
        ModelError: the last message has no text.
    """
    content = messages[-1].get("content")
    if isinstance(content, str):
        messages[-1]["content"] = content + _MARK
        return content
    parts = [dict(part) for part in content] if isinstance(content, (list, tuple)) else []
    text = next((part for part in reversed(parts) if "text" in part), None)
    if text is None:
        raise ModelError("the final message has no text to continue", where=name)
    content = str(text["text"])
    text["text"] = content + _MARK
    messages[-1]["content"] = parts
    return content


def cut_at_mark(rendered: str, final: str, name: str) -> str:
    """Return the text before the mark; without trailing space if the template trims the message.

    Raises:
        ModelError: the template left out the message or changed it.
    """
    mark = _MARK.strip()
    if final.strip() not in rendered or mark not in rendered:
        raise ModelError("the template does not write the final message as it is", where=name)
    at = rendered.rindex(mark)
    return rendered[:at] if rendered.startswith(_MARK, at) else rendered[:at].rstrip()
