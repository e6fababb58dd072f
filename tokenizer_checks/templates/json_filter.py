"""The filter ``tojson`` as transformers writes it, and as others do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tokenizer_checks.templates.bounds import Bounds
from tokenizer_checks.templates.chat import JsonStyle

_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"}  # as Jinja's own filter


def json_filter(style: JsonStyle, bounds: Bounds) -> Callable[..., str]:
    """Return the filter: no HTML escapes, keys in their order, a space behind commas and colons.

    ``style`` says what is otherwise.
    """

    def tojson(
        x: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        bounds.check_indent(indent)
        text = json.dumps(
            x,
            ensure_ascii=ensure_ascii or style.ascii_only,
            indent=indent,
            separators=(",", ":") if style.compact else separators,
            sort_keys=sort_keys or style.sort_keys,
        )
        if style.escape_html:
            text = "".join(_HTML.get(char, char) for char in text)
        return text.replace("/", "\\/") if style.escape_slashes else text

    return tojson
