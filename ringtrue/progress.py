"""How far a run has come: bars on a terminal, a few plain lines elsewhere, always on stderr."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class ProgressReport(Protocol):
    """What a cycle tells while it runs. Used as a context: leaving it ends the display."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing; what was said stays."""

    def say(self, line: str) -> None:
        """Show one line."""

    def begin(self, name: str, total: int) -> None:
        """Announce a part of the work, for example an endpoint, of ``total`` steps."""

    def advance(self, name: str, steps: int = 1) -> None:
        """Count steps of a part that are done."""


class Bars:
    """A bar for each part."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        """Show one line above the bars."""
        self._progress.console.print(line, markup=False, highlight=False)

    def begin(self, name: str, total: int) -> None:
        """Add a bar."""
        self._tasks[name] = self._progress.add_task(name, total=total)

    def advance(self, name: str, steps: int = 1) -> None:
        """Fill a bar further."""
        self._progress.advance(self._tasks[name], steps)


class Lines:
    """A line each time another quarter of a part is done, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._parts: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def say(self, line: str) -> None:
        """Write one line, unwrapped."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def begin(self, name: str, total: int) -> None:
        """Remember the part; its first line comes with its first quarter."""
        self._parts[name] = (0, total)

    def advance(self, name: str, steps: int = 1) -> None:
        """Write a line if these steps completed a quarter."""
        done, total = self._parts[name]
        self._parts[name] = (done + steps, total)
        if (done + steps) * 4 // total > done * 4 // total:
            self.say(f"{name}: {done + steps} of {total}")


def progress_on(console: Console) -> ProgressReport:
    """Return bars for a terminal and lines for anything else."""
    return Bars(console) if console.is_terminal else Lines(console)
