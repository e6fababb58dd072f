"""Calls whose arguments stand between tags, one parameter after the other."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolcall_validator.families.json_body import first_of, skip_space
from toolcall_validator.families.parsed import RawCall, Trouble
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.values import quoted, value_of
from toolcall_validator.strict_json import Flaw, parse_strict

_LOOKAHEAD = 64  # closing tags inside one value that are looked past


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of one format.

    ``parameter`` has the group ``key``, and ``string`` where the format says
    whether the value is a string. With ``lines`` the value stands on lines of
    its own, and a line break at each end belongs to the tags. ``borders``
    mean that the call's own closing tag is missing.
    """

    parameter: re.Pattern[str]
    close_parameter: str
    close_call: str
    borders: tuple[str, ...]
    lines: bool = False

    def read(self, reading: Reading, start: int, at: int, name: str) -> int:
        """Add the call that opened at ``start`` and has its parameters from ``at``; return its end.

        A closing tag ends a value only where another tag or the call's end
        follows, so values may hold tags; a value that holds that very sequence
        can't be told from two.
        """
        text, members, typed = reading.text, [], True
        troubles: list[Trouble] = [] if name else [Trouble.NO_NAME]
        while True:
            at = skip_space(text, at)
            found = self.parameter.match(text, at)
            if found is None:
                break
            stop, at = self._value(text, found.end())
            if at == stop:
                troubles.append(Trouble.UNCLOSED if stop == len(text) else Trouble.MALFORMED)
            value, sure, fault = self._json(reading, name, found, self._trimmed(text[found.end() : stop]))
            members.append(f"{quoted(found['key'])}: {value}")
            typed = typed and sure
            troubles += [fault] if fault else []
        end = at
        if not text.startswith(self.close_call, at):
            stops = [first_of(text, at, (self.close_call, *self.borders))]
            again = self.parameter.search(text, at, stops[0])
            end = stops[0] if again is None else again.start()
            troubles += [Trouble.MALFORMED] if text[at:end].strip() else []
        if text.startswith(self.close_call, end):
            end += len(self.close_call)
        else:
            troubles.append(Trouble.UNCLOSED)
        arguments = "{" + ", ".join(members) + "}"
        reading.add(RawCall(name, arguments, None, (start, end), typed), *dict.fromkeys(troubles))
        return end

    def _value(self, text: str, start: int) -> tuple[int, int]:
        """Return where a value ends and where reading goes on; the same when no tag closes it."""
        first = at = text.find(self.close_parameter, start)
        if first < 0:
            stop = first_of(text, start, (self.close_call, *self.borders))
            return stop, stop
        following = self.parameter.search(text, first)
        limit = len(text) if following is None else following.start()
        for _ in range(_LOOKAHEAD):
            after = skip_space(text, at + len(self.close_parameter))
            if after in (len(text), limit) or text.startswith(self.close_call, after):
                return at, at + len(self.close_parameter)
            at = text.find(self.close_parameter, at + 1, limit)
            if at < 0:
                break
        return first, first + len(self.close_parameter)

    def _trimmed(self, value: str) -> str:
        return value.removeprefix("\n").removesuffix("\n") if self.lines else value

    def _json(
        self, reading: Reading, name: str, found: re.Match[str], raw: str
    ) -> tuple[str, bool, Trouble | None]:
        kind = found["string"] if "string" in self.parameter.groupindex else None
        if kind == "true":
            return quoted(raw), True, None
        if kind == "false":
            broken = parse_strict(raw).flaw is Flaw.NOT_JSON
            return raw.strip() or "null", True, Trouble.NOT_JSON if broken else None
        return *value_of(raw, reading.schemas.get(name), found["key"]), None
