"""The shape of the answer: empty, reasoning alone, runaway, looping, structure not met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolcall_validator.case import Case
from toolcall_validator.fault import Fault, fault
from toolcall_validator.rules.leak import call_swallowed
from toolcall_validator.rules.stream import runs_away
from toolcall_validator.schemas import TooCostlyError
from toolcall_validator.scripts import foreign_letters
from toolcall_validator.strict_json import parse_strict

LONGEST_PERIOD = 50  # units, characters or words
FEWEST_COPIES = 4
SHORTEST_LOOP = 32  # units


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
    """A tail that repeats itself; ``!`` for ever is what NaN logits print."""
    texts = [case.answer.content, case.answer.reasoning, *(judged.call.arguments for judged in case.calls)]
    for text in texts:
        start = loop_start(text.value)
        if start is not None:
            yield fault("output.degenerate_loop", span=text.span(start, len(text.value)))
            return


def unexpected_script(case: Case) -> Iterator[Fault]:
    """Letters of a script that neither prompt, tools nor reference hold."""
    texts = [case.answer.content, *(judged.call.arguments for judged in case.calls)]
    for text in texts:
        if text.value.isascii() or case.asked.has_pictures:
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
        yield fault(
            "request.broken_schema", dialect=schema.dialect, detail="its references multiply: not scored"
        )


def loop_start(text: str) -> int | None:
    """Return where the repeating tail of a text begins (in characters), or ``None``.

    The tail repeats with a period of 1 to 50 characters, or words, at least 4
    times and over at least 32 of them. White space behind it is not looked at,
    unless there is nothing else.
    """
    tail = text.rstrip() or text
    length = repeating(tail)
    if length is not None:
        return len(tail) - length
    words = tail[-20_000:].split()
    length = repeating(words)
    if length is None:
        return None
    return max(0, len(tail) - len(" ".join(words[-length:])))


def repeating(units: Sequence[str]) -> int | None:
    """Return the length of the tail that repeats with the shortest period, or ``None``."""
    count = len(units)
    for period in range(1, min(LONGEST_PERIOD, count // FEWEST_COPIES) + 1):
        needed = max(FEWEST_COPIES * period, SHORTEST_LOOP)
        if needed > count or units[-1] != units[-1 - period]:
            continue
        if units[count - needed + period :] != units[count - needed : count - period]:
            continue
        length = needed
        while length < count and units[count - length - 1] == units[count - length - 1 + period]:
            length += 1
        return length
    return None


def _says_something(case: Case) -> bool:
    answer = case.answer
    return bool(case.delivered or answer.content.value.strip() or answer.refused or answer.cut)
