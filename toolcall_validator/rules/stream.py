"""What is wrong with the deltas themselves, whatever clients make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from toolcall_validator.calls import resent
from toolcall_validator.case import Case, Judged
from toolcall_validator.events import CallPart
from toolcall_validator.fault import Fault, Span, fault

MANY = 5  # identical calls that nobody asked for in parallel
MANY_EMPTY = 8  # the same of calls without arguments: five dice are thrown that way
MANY_AT_CAP = 3  # the same where only the cap ended them


def sibling_lost(case: Case) -> Iterator[Fault]:
    """A gap in the indices: a call of a parallel set is missing."""
    if not case.answer.streamed or case.by_block:
        return
    used = sorted({part.index for part in case.answer.parts if part.index is not None})
    gap = next((place for place, index in enumerate(used) if index != place), None)
    if gap is not None:
        part = next(part for part in case.answer.parts if part.index == used[gap])
        yield fault(
            "stream.sibling_lost", span=_at(part), detail=f"index {gap} is missing before {used[gap]}"
        )


def index_reused(case: Case) -> Iterator[Fault]:
    """Two calls on one index: the strict assembler reads one, clients read two."""
    if not case.answer.streamed:
        return
    opened = Counter(call.index for call in case.answer.calls)
    seen: set[int | None] = set()
    for call in case.answer.calls:
        if call.index is not None and opened[call.index] > 1 and call.index in seen:
            yield fault("stream.index_reused", call=call.position, span=Span("delta", call.chunk))
        seen.add(call.index)


def call_duplicated(case: Case) -> Iterator[Fault]:
    """One call under several indices."""
    if not case.answer.streamed or runs_away(case):
        return
    seen: dict[tuple[str, str], Judged] = {}
    for judged in case.calls:
        first = seen.setdefault(same_call(judged), judged)
        if first is not judged and first.call.index != judged.call.index:
            yield fault(
                "stream.call_duplicated",
                call=judged.call.position,
                span=judged.call.arguments.whole,
                detail=f"equal to call {first.call.position}",
            )


def name_resent(case: Case) -> Iterator[Fault]:
    """The name came again in a continuation: clients that concatenate call a tool that is not there."""
    if sum(1 for part in case.answer.parts if part.name) < 2:
        return
    for part, before in _continuations(case):
        if part.name and resent(before, part.name, case.asked.tools.keys()):
            yield fault("stream.name_resent", span=_at(part))
            return


def null_identity(case: Case) -> Iterator[Fault]:
    """``id`` or ``name`` is null in a continuation: clients that merge fields lose the identity."""
    if not any(part.nulls for part in case.answer.parts):
        return
    for part, _ in _continuations(case):
        if part.nulls:
            yield fault("stream.null_identity", span=_at(part))
            return


def empty_identity(case: Case) -> Iterator[Fault]:
    """``id`` or ``name`` is "" in a continuation."""
    if not any(part.empties for part in case.answer.parts):
        return
    for part, _ in _continuations(case):
        if part.empties:
            yield fault("stream.empty_identity", span=_at(part))
            return


def null_list(case: Case) -> Iterator[Fault]:
    """``tool_calls: null`` in a delta: clients that iterate over it stop."""
    if case.answer.null_lists:
        yield fault("stream.null_list", span=Span("delta", case.answer.null_lists[0].chunk))


def same_call(judged: Judged) -> tuple[str, str]:
    """Return what makes two calls the same one: the name, and the arguments without their white space."""
    return judged.name, "".join(judged.text.split())


def runs_away(case: Case) -> bool:
    """Tell whether the answer is many identical calls, fewer of them where the cap was used up."""
    if len(case.calls) < MANY_AT_CAP:
        return False
    (_, arguments), most = Counter(map(same_call, case.calls)).most_common(1)[0]
    if case.answer.finish_reason == "length" or case.capped:
        return most >= MANY_AT_CAP
    return most >= (MANY_EMPTY if arguments in ("", "{}") else MANY)


def _continuations(case: Case) -> Iterator[tuple[CallPart, str]]:
    """Yield the deltas that go on with a call of their index, and the name as far as it had come."""
    if not case.answer.streamed:
        return
    names: dict[int | None, str] = {}
    ids: dict[int | None, str] = {}
    for part in case.answer.parts:
        known = part.index in names
        other = bool(part.id) and bool(ids.get(part.index)) and part.id != ids[part.index]
        if known and not other:
            yield part, names[part.index]
        if other or not known:
            names[part.index] = part.name
            ids[part.index] = part.id
        elif part.name != names[part.index]:
            names[part.index] += part.name


def _at(part: CallPart) -> Span:
    return Span("delta", part.chunk)
