"""Renders a chat template as transformers does, within bounds.

The date comes from the prompt, never from a clock; a loop without end meets a
count, never a timer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError

from ringtrue.errors import ModelError
from tokenizer_checks.templates.bounds import Bounds, Meter, TooCostlyError
from tokenizer_checks.templates.chat import Chat, Dialect, Prompt
from tokenizer_checks.templates.continuation import cut_at_mark, mark_final
from tokenizer_checks.templates.sandbox import METER, NOW, TemplateEnvironment

_REASONING = ("reasoning_content", "thinking", "reasoning")


class Renderer:
    """Renders prompts; keeps the templates that it compiled, up to ``kept`` of them.

    Everything it returns is a pure function of the prompt.
    """

    def __init__(self, bounds: Bounds | None = None, *, kept: int = 64) -> None:
        self._bounds = bounds or Bounds()
        self._kept = kept
        self._compiled: dict[tuple[str, str, Dialect], Callable[[Mapping[str, Any]], str]] = {}

    def render(self, prompt: Prompt) -> str:
        """Return the prompt's text.

        Raises:
            ModelError: the template can't be parsed, refuses the chat, uses a
                variable that is not defined, or goes beyond its bounds; the
                template and the line are named.
        """
        draw = self._draw(prompt)
        chat = prompt.chat
        messages = [_normalised(message) for message in chat.messages]
        if not messages:
            raise ModelError("a chat without messages can't be rendered", where=prompt.name)
        mark = mark_final(messages, prompt.name) if chat.continue_final else None
        text = draw(self._variables(prompt, messages))
        return text if mark is None else cut_at_mark(text, mark, prompt.name)

    def _variables(self, prompt: Prompt, messages: list[dict[str, Any]]) -> dict[str, Any]:
        chat: Chat = prompt.chat
        return {
            **prompt.special,
            "messages": messages,
            "tools": [dict(tool) for tool in chat.tools] if chat.tools else None,
            "documents": None,
            "add_generation_prompt": chat.generation_prompt and not chat.continue_final,
            **chat.options,
            METER: Meter(self._bounds),
            NOW: prompt.now,
        }

    def _draw(self, prompt: Prompt) -> Callable[[Mapping[str, Any]], str]:
        key = (prompt.template, prompt.name, prompt.dialect)
        if key not in self._compiled:
            if len(self._compiled) >= self._kept:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[key] = _compile(prompt, self._bounds)
        return self._compiled[key]


def _compile(prompt: Prompt, bounds: Bounds) -> Callable[[Mapping[str, Any]], str]:
    environment = TemplateEnvironment(prompt.dialect, bounds)
    try:
        code = environment.compile(prompt.template, filename=prompt.name)
        template = environment.template_class.from_code(environment, code, environment.make_globals(None))
    except TemplateSyntaxError as error:
        raise ModelError(
            f"the template can't be parsed: {error.message}",
            where=f"{prompt.name}, line {error.lineno}",
            remedy="Compare it with the model's published template",
        ) from error
    except (TemplateError, RecursionError, SyntaxError, ValueError) as error:
        raise ModelError(f"the template can't be compiled: {error}", where=prompt.name) from error

    def draw(variables: Mapping[str, Any]) -> str:
        try:
            text = template.render(dict(variables))
            bounds.check_size(len(text))
        # A template can make any operation of Python fail: each of them is the template's refusal.
        except Exception as error:
            raise _refusal(error, prompt.name) from error
        return text

    return draw


def _refusal(error: Exception, name: str) -> ModelError:
    line = _line(error.__traceback__, name)
    where = name if line is None else f"{name}, line {line}"
    if isinstance(error, (TooCostlyError, RecursionError, MemoryError, OverflowError)):
        return ModelError(f"the template {_cost(error)}", where=where, remedy="Bound its loops and macros")
    return ModelError(
        f"the template refused the chat: {str(error).rstrip('.') or type(error).__name__}",
        where=where,
        remedy="Send what the template expects, or compare it with the model's published one",
    )


def _cost(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "calls itself without end"
    return str(error) if isinstance(error, TooCostlyError) else f"makes too much of too little: {error}"


def _line(trace: TracebackType | None, name: str) -> int | None:
    """Return the innermost line of the template in the traceback, which Jinja rewrites to its lines."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _normalised(message: Mapping[str, Any]) -> dict[str, Any]:
    """Drop keys whose value is none, and give reasoning the names that templates read."""
    kept = {key: value for key, value in message.items() if value is not None}
    reasoning = next((kept[key] for key in _REASONING if key in kept), None)
    if reasoning is None:
        return kept
    return {"thinking": reasoning, **kept, "reasoning_content": reasoning}
