"""``tool_choice``, finish reasons and usage."""

from __future__ import annotations

from collections.abc import Iterator

from toolcall_validator.case import Case
from toolcall_validator.fault import Fault, Span, fault


def none_violated(case: Case) -> Iterator[Fault]:
    """A call although the caller wanted none."""
    if case.asked.choice == "none":
        for judged in case.calls:
            yield fault("choice.none_violated", call=judged.call.position)


def required_violated(case: Case) -> Iterator[Fault]:
    """No call although one was required, by name or in general."""
    if case.asked.choice in ("required", "named") and not case.delivered and not case.answer.refused:
        yield fault("choice.required_violated")


def wrong_function(case: Case) -> Iterator[Fault]:
    """A call of another tool than the one that was named, or outside those allowed."""
    if case.asked.allowed is not None:
        for judged in case.calls:
            if judged.name not in case.asked.allowed:
                yield fault("choice.wrong_function", call=judged.call.position, span=judged.call.name.whole)


def no_call(case: Case) -> Iterator[Fault]:
    """The finish reason says that calls were made, and there is none."""
    if case.answer.finish_reason == "tool_calls" and not case.delivered:
        yield fault("finish.no_call", span=_finish(case))


def stop_with_call(case: Case) -> Iterator[Fault]:
    """Clients that wait for ``tool_calls`` drop the call. A named choice ends with ``stop`` at OpenAI too."""
    if case.answer.finish_reason == "stop" and case.delivered and case.asked.choice in ("auto", "required"):
        yield fault("finish.stop_with_call", span=_finish(case))


def length_hidden(case: Case) -> Iterator[Fault]:
    """All allowed tokens were used and the finish reason does not say so."""
    if case.capped and case.answer.finish_reason not in (None, "length"):
        yield fault("finish.length_hidden", span=_finish(case))


def missing(case: Case) -> Iterator[Fault]:
    """The answer ended without a finish reason."""
    if not case.answer.finishes:
        yield fault("finish.missing")


def duplicate(case: Case) -> Iterator[Fault]:
    """The stream ended twice."""
    if len(case.answer.finishes) > 1:
        yield fault("finish.duplicate", span=Span("delta", case.answer.finishes[1].chunk))


def usage_missing(case: Case) -> Iterator[Fault]:
    """Usage was asked for and not sent."""
    if case.answer.streamed and case.asked.wants_usage and not case.usage:
        yield fault("usage.missing")


def _finish(case: Case) -> Span:
    return Span("delta", case.answer.finishes[0].chunk)
