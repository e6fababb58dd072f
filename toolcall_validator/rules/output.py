"""The shape of the answer: empty, reasoning alone, runaway, looping, structure not met."""

from __future__ import annotations

from collections.abc import Iterator

from toolcall_validator.case import Case
from toolcall_validator.fault import Fault, fault
from toolcall_validator.loops import LoopWatch, loop_start, repeating
from toolcall_validator.rules.leak import call_swallowed
from toolcall_validator.rules.stream import runs_away
from toolcall_validator.schemas import TOO_COSTLY, TooCostlyError
from toolcall_validator.scripts import at_home, foreign_letters
from toolcall_validator.strict_json import parse_strict


def empty(case: Case) -> Iterator[Fault]:
    """Nothing at all, where no limit explains it."""
    if not _says_something(case) and not case.answer.reasoning.value.strip():
        yield fault("output.empty")


def reasoning_only(case: Case) -> Iterator[Fault]:
    """Reasoning, and neither an answer nor a call."""
    thought = case.answer.reasoning.value.strip()
    if thought and not _says_something(case) and not any(call_swallowed(case)):
        yield fault("output.reasoning_only", span=case.answer.reasoning.whole)


def runaway_calls(case: Case) -> Iterator[Fault]:
    """Many identical calls up to the cap."""
    if runs_away(case):
        yield fault("output.runaway_calls", call=case.calls[-1].call.position)


def degenerate_loop(case: Case) -> Iterator[Fault]:
    """A tail that repeats itself; ``!`` for ever is what NaN logits print.

    White space behind an answer is none, unless it goes on up to the cap. The
    detail tells how early a reader of the stream could have known.
    """
    texts = [case.answer.content, case.answer.reasoning, *(judged.call.arguments for judged in case.calls)]
    for text in texts:
        start = loop_start(text.value)
        if start is None and case.answer.cut:
            start = _padding_start(text.value)
        if start is not None:
            detail = f"a loop after {start + _characters_to_know(text.value[start:]):,} characters"
            yield fault("output.degenerate_loop", span=text.span(start, len(text.value)), detail=detail)
            return


def unexpected_script(case: Case) -> Iterator[Fault]:
    """Letters of a script that neither prompt, tools nor reference hold."""
    texts = [case.answer.content, *(judged.call.arguments for judged in case.calls)]
    for text in texts:
        if at_home(text.value) or case.asked.has_pictures:
            continue
        span = foreign_letters(text.value, case.asked.haystack + (case.reference or ""))
        if span is not None:
            yield fault("output.unexpected_script", span=text.span(*span))
            return


def structured_invalid(case: Case) -> Iterator[Fault]:
    """The text does not meet the ``response_format`` of the request."""
    text = case.answer.content
    structure = case.asked.structure
    if structure is None or case.delivered or case.answer.refused or (not text.value and case.answer.cut):
        return
    parsed = parse_strict(text.value)
    if parsed.flaw is not None or (structure is True and not isinstance(parsed.value, dict)):
        yield fault("output.structured_invalid", span=text.whole, detail=parsed.flaw or "no object")
        return
    if isinstance(structure, bool):
        return
    schema = case.schemas.get(structure)
    try:
        if not schema.broken and not schema.accepts(parsed.value):
            yield fault("output.structured_invalid", span=text.whole, dialect=schema.dialect)
    except TooCostlyError:
        yield fault("request.broken_schema", dialect=schema.dialect, detail=TOO_COSTLY)


def _says_something(case: Case) -> bool:
    answer = case.answer
    return bool(case.delivered or answer.content.value.strip() or answer.refused or answer.cut)


def _padding_start(text: str) -> int | None:
    """Return where the white space begins that a text ends in, if it is a loop by itself."""
    end = len(text.rstrip())
    return end if repeating(text[end:]) is not None else None


def _characters_to_know(loop: str) -> int:
    watch = LoopWatch()
    for character in loop:
        watch.feed(character)
        if watch.seen_at is not None:
            return watch.seen_at
    return len(loop)
