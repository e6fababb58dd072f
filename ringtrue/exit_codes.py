"""What a command tells the shell (docs/architecture.md, "Exit codes")."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ringtrue.records import DRIFT, State, Verdict
from ringtrue.verdict import loudest


class ExitCode(IntEnum):
    """The exit codes; where several hold, USAGE goes before DRIFT and DRIFT before UNMEASURED."""

    FINE = 0
    DRIFT = 1
    USAGE = 2
    UNMEASURED = 3
    INTERRUPTED = 130


def exit_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """Return what the verdicts say together. No verdict at all is not fine but unmeasured."""
    state = loudest(verdicts)
    if state in DRIFT:
        return ExitCode.DRIFT
    return ExitCode.FINE if state is State.OK else ExitCode.UNMEASURED
