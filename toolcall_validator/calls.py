"""Calls from deltas: by the letter of the contract, and as common clients read them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from toolcall_validator.events import CallPart
from toolcall_validator.strict_json import complete_object
from toolcall_validator.text import Text, joined


@dataclass(frozen=True, slots=True)
class Call:
    """One call. ``position`` counts the calls of the answer in the order in which they were opened."""

    position: int
    index: int | None
    id: str
    name: Text
    arguments: Text
    as_object: bool = False

    @property
    def chunk(self) -> int | None:
        """The chunk in which the call was opened, if it said anything."""
        for text in (self.name, self.arguments):
            if text.chunks:
                return text.chunks[0]
        return None


class _Run:
    """A delta with an identity, and the nameless ones that follow it on its index."""

    def __init__(self, part: CallPart, key: int) -> None:
        self.key = key
        self.index = part.index
        self.id = part.id
        self.names = [(part.chunk, part.name)]
        self.pieces = [(part.chunk, part.arguments)]
        self.as_object = part.as_object

    def add(self, part: CallPart) -> None:
        self.pieces.append((part.chunk, part.arguments))
        self.as_object = self.as_object or part.as_object

    @property
    def name(self) -> str:
        return "".join(name for _, name in self.names)

    @property
    def arguments(self) -> str:
        return "".join(piece for _, piece in self.pieces)

    def finished(self, position: int) -> Call:
        return Call(
            position,
            self.index,
            self.id,
            joined("name", self.names),
            joined("arguments", self.pieces),
            self.as_object,
        )


def strict_calls(parts: Sequence[CallPart]) -> tuple[Call, ...]:
    """Return the contract's calls: the index addresses, id comes once, name and arguments concatenate."""
    calls: dict[int, _Run] = {}
    for part in parts:
        key = part.index if part.index is not None else 0
        if key not in calls:
            calls[key] = _Run(part, key)
            continue
        calls[key].names.append((part.chunk, part.name))
        calls[key].id = calls[key].id or part.id
        calls[key].add(part)
    return tuple(run.finished(position) for position, run in enumerate(calls.values()))


def tolerant_calls(parts: Sequence[CallPart], declared: Set[str]) -> tuple[Call, ...]:
    """Return the calls as common clients read them.

    A new identity on a used index opens a new call, a name sent again is not
    appended, and a delta without an index goes by its id, else to the last
    call. Deltas are first joined into runs, so that the result does not depend
    on how the arguments were cut.
    """
    open_calls: dict[int, _Run] = {}
    calls: list[_Run] = []
    for run in _runs(parts):
        call = open_calls.get(run.key)
        if call is None or _opens(call, run, declared):
            calls.append(run)
            open_calls[run.key] = run
            continue
        call.id = call.id or run.id
        if run.name and not resent(call.name, run.name, declared):
            call.names.extend(run.names)
        call.pieces.extend(run.pieces)
        call.as_object = call.as_object or run.as_object
    return tuple(run.finished(position) for position, run in enumerate(calls))


def resent(name: str, again: str, declared: Set[str]) -> bool:
    """Tell whether ``again`` repeats the name, rather than going on with it."""
    return name == again and name + again not in declared


def _runs(parts: Sequence[CallPart]) -> list[_Run]:
    runs: list[_Run] = []
    last: dict[int, _Run] = {}
    keys: dict[str, int] = {}
    key = 0
    for part in parts:
        if part.index is not None:
            key = part.index
        elif part.id:  # keys of calls without an index lie below zero
            key = keys.get(part.id, -len(keys) - 1)
        if part.id:
            keys.setdefault(part.id, key)
        if key in last and not part.id and not part.name:
            last[key].add(part)
            continue
        last[key] = _Run(part, key)
        runs.append(last[key])
    return runs


def _opens(call: _Run, run: _Run, declared: Set[str]) -> bool:
    """Tell whether a run on a used index is a call of its own."""
    if run.id and call.id:
        return run.id != call.id and bool(run.name)
    if not run.name:
        return False
    other = run.name != call.name and {run.name, call.name} <= declared
    if other and call.name + run.name not in declared:
        return True
    begins = run.arguments.lstrip().startswith("{") and run.arguments != call.arguments
    return begins and complete_object(call.arguments)
