"""JSON as RFC 8259 means it, with a second look at what was refused."""

from __future__ import annotations

import json
from typing import Any

import orjson

from ringtrue.records import Failure, FailureKind, Party


def parse_json(data: bytes | str) -> tuple[Any, Failure | None]:
    """Return the value and why it is not JSON, if it is not.

    ``NaN`` and ``Infinity`` are not JSON, but a server that prints them has
    computed them: the value then comes back beside the failure, so that the
    rest of the answer is kept. Any other failure comes with ``None``.
    """
    text = data.strip()
    if not text:
        return None, _malformed(FailureKind.NOT_JSON, "the body is empty")
    try:
        return orjson.loads(text), None
    except orjson.JSONDecodeError as error:
        reason = str(error)
    opening = text[:200] if isinstance(text, str) else text[:200].decode("utf-8", "replace")
    if opening.startswith("<"):
        return None, _malformed(FailureKind.HTML, f"a web page came where JSON was due{_title(data)}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None, _malformed(FailureKind.NOT_JSON, f"the body is not JSON ({reason})")
    return value, _malformed(
        FailureKind.NOT_JSON, "the body holds NaN or Infinity, which JSON does not allow"
    )


def _malformed(kind: FailureKind, message: str) -> Failure:
    return Failure(kind, message, Party.PROVIDER)


def _title(data: bytes | str) -> str:
    page = data if isinstance(data, str) else data.decode("utf-8", "replace")
    _, opened, rest = page.partition("<title>")
    title, closed, _ = rest.partition("</title>")
    shown = "".join(filter(str.isprintable, title.strip()))[:80]
    return f' ("{shown}")' if opened and closed else ""
