"""One pass over a raw completion: what was seen so far, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from toolcall_validator.families.parsed import Leftover, Parsed, Problem, RawCall, Region, Schemas, Trouble


@dataclass(slots=True)
class Reading:
    """Collects calls, problems and leftovers of one text.

    ``taken`` are the regions that belong to calls and their envelopes, in
    order; the gaps between them are content.
    """

    text: str
    schemas: Schemas
    calls: list[RawCall] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    taken: list[Region] = field(default_factory=list)

    def add(self, call: RawCall, *troubles: Trouble) -> None:
        """Keep a call with what is wrong about it."""
        self.problems += [Problem(trouble, call.span, len(self.calls)) for trouble in troubles]
        self.calls.append(call)

    def wrong(self, trouble: Trouble, start: int, end: int) -> None:
        """Note a problem that concerns no call in particular."""
        self.problems.append(Problem(trouble, (start, end)))

    def left(self, start: int, end: int, trouble: Trouble = Trouble.STRAY_TEXT) -> None:
        """Note text that has no place here; white space has one everywhere."""
        piece = self.text[start:end]
        if piece.strip():
            self.leftovers.append(Leftover(piece, (start, end)))
            self.wrong(trouble, start, end)

    def gaps(self, start: int, end: int) -> list[Region]:
        """Return what of ``[start, end)`` belongs to no call."""
        found, at = [], start
        for first, last in self.taken:
            if last <= start or first >= end:
                continue
            if first > at:
                found.append((at, first))
            at = max(at, last)
        return [*found, (at, end)] if at < end else found

    def without_calls_in(self, start: int, end: int) -> None:
        """Turn the calls that lie in ``[start, end)`` into problems of the reasoning."""
        kept = [call for call in self.calls if not start <= call.span[0] < end]
        places = {id(call): place for place, call in enumerate(kept)}
        moved = [
            Problem(Trouble.CALL_IN_REASONING, call.span)
            for call in self.calls
            if start <= call.span[0] < end
        ]
        others = [found for found in self.problems if not start <= found.span[0] < end]
        self.problems = moved + [
            found if found.call is None else replace(found, call=places[id(self.calls[found.call])])
            for found in others
        ]
        self.leftovers = [piece for piece in self.leftovers if not start <= piece.span[0] < end]
        self.calls = kept

    def parsed(self, content: str, reasoning: str) -> Parsed:
        """Return what was collected."""
        return Parsed(
            content.strip(),
            reasoning.strip(),
            tuple(self.calls),
            tuple(sorted(self.leftovers, key=lambda piece: piece.span)),
            tuple(sorted(dict.fromkeys(self.problems), key=lambda problem: (problem.span, problem.trouble))),
        )
