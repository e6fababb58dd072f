"""Jinja's filters that can make much of little, with their size checked first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import nodes
from jinja2.filters import FILTERS
from jinja2.utils import pass_eval_context

from tokenizer_checks.templates.bounds import Bounds


def bounded_filters(bounds: Bounds) -> dict[str, Callable[..., Any]]:
    """Return Jinja's filters that can make much of little, with their size checked first."""

    def center(value: str, width: int = 80) -> str:
        bounds.check_size(width)
        return str(FILTERS["center"](value, width))

    def indent(s: str, width: int | str = 4, *args: Any, **kwargs: Any) -> Any:
        bounds.check_indent(width)
        return FILTERS["indent"](s, width, *args, **kwargs)

    def formatted(value: str, *args: Any, **kwargs: Any) -> Any:
        bounds.check_format(str(value), (*args, *kwargs.values()))
        return FILTERS["format"](value, *args, **kwargs)

    @pass_eval_context
    def replace(eval_ctx: nodes.EvalContext, s: str, old: str, new: str, count: int | None = None) -> Any:
        bounds.check_replace(str(s), old, new)
        return FILTERS["replace"](eval_ctx, s, old, new, count)

    @pass_eval_context
    def join(eval_ctx: nodes.EvalContext, value: Any, d: str = "", attribute: Any = None) -> Any:
        parts = bounds.check_join(d, value)
        # The filter in the table chooses between synchronous and asynchronous by the context.
        return FILTERS["join"](eval_ctx, parts, d, attribute)

    return {"center": center, "indent": indent, "format": formatted, "replace": replace, "join": join}
