"""Jinja as transformers sets it up for chat templates, with a meter in it.

Source: ``transformers/utils/chat_template_utils.py`` (5.24): an immutable
sandbox with ``trim_blocks`` and ``lstrip_blocks``, loop controls, the tag
``generation``, and its own ``tojson``, ``raise_exception``, ``strftime_now``,
``dict`` and ``namespace``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from jinja2 import TemplateError, nodes, pass_context
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tokenizer_checks.templates.bounded_filters import bounded_filters
from tokenizer_checks.templates.bounds import Bounds, Meter
from tokenizer_checks.templates.chat import Dialect
from tokenizer_checks.templates.json_filter import json_filter
from tokenizer_checks.templates.metering import metered
from tokenizer_checks.templates.safe_objects import SafeDict, SafeNamespace

# Variables of one rendering. No template can say a name with a space in it.
METER, NOW = "the meter", "the time"


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Jinja as transformers sets it up, with a meter in it."""

    def __init__(self, dialect: Dialect, bounds: Bounds) -> None:
        super().__init__(
            trim_blocks=dialect.trim_blocks,
            lstrip_blocks=dialect.lstrip_blocks,
            keep_trailing_newline=dialect.keep_trailing_newline,
            extensions=[GenerationTag, loopcontrols],
            finalize=_count_written,
        )
        self.bounds = bounds
        self.intercepted_binops = frozenset({"+", "*", "**", "%"})
        self.filters |= {"tojson": json_filter(dialect.json, bounds), **bounded_filters(bounds)}
        self.globals |= {"raise_exception": _raise, "dict": SafeDict(), "namespace": SafeNamespace}
        if dialect.has_clock:
            self.globals["strftime_now"] = _strftime_now

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        return super()._generate(metered(source), *args, **kwargs)

    def metered_step(self, context: Context, characters: int) -> None:
        """Count a block that is entered."""
        _meter(context).step(1, characters)

    def metered_join(self, context: Context, *parts: Any) -> str:  # noqa: ARG002  # as every metered call
        """Do what ``~`` does."""
        return "".join(self.bounds.check_join("", [str(part) for part in parts]))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Do what the operator does, if the result is not too large."""
        self.bounds.check_operation(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return the sandbox's ``format`` of a string, if ``value`` is one, with its widths checked first."""
        formatted = super().wrap_str_format(value)
        if formatted is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            named = [item for arg in args if isinstance(arg, dict) for item in arg.values()]
            self.bounds.check_format(value.__self__, (*args, *named, *kwargs.values()))
            return formatted(*args, **kwargs)

        return bounded

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  # Jinja's
        """Call, if the result is not too large."""
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            args = __self.bounds.check_method(owner, getattr(__obj, "__name__", ""), args)
        result = super().call(__context, __obj, *args, **kwargs)
        if isinstance(result, range):
            _meter(__context).step(len(result), 0)
        __self.bounds.check_value(result)
        return result


class GenerationTag(Extension):
    """``{% generation %}``: marks the assistant's own text, and renders as what it holds."""

    tags = {"generation"}  # noqa: RUF012  # Jinja's own declaration

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the block as a call, which has a scope of its own, as in transformers."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_as_it_is"), [], [], body).set_lineno(line)

    def _as_it_is(self, caller: Macro) -> str:
        return str(caller())


def _meter(context: Context) -> Meter:
    meter: Meter = context.parent[METER]
    return meter


@pass_context
def _count_written(context: Context, value: Any) -> Any:
    _meter(context).write(len(value) if isinstance(value, str) else 1)
    return value


@pass_context
def _strftime_now(context: Context, format: str) -> str:  # noqa: A002  # transformers' own name
    now: datetime = context.parent[NOW]
    return now.strftime(format)


def _raise(message: str) -> None:
    raise TemplateError(message)
