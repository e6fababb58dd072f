"""What the engine thread can be asked to do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from reference_engine.generation import Generation
from reference_engine.models.loading import LoadedModel
from reference_engine.stream import StepStream
from ringtrue.errors import MeasureError, RingtrueError


@dataclass(slots=True, eq=False)
class RowTask:
    """The logprobs after one prompt, given to ``use`` on the engine thread; runs in a batch with its like."""

    model: LoadedModel
    ids: tuple[int, ...]
    corrupt_beyond: int | None
    use: Callable[[Tensor], Any]
    future: Future[Any] = field(default_factory=Future)

    @property
    def group(self) -> object:
        """Rows of one variant of one model share a batch."""
        return self.model.name

    @property
    def length(self) -> int:
        """The prompt, in tokens."""
        return len(self.ids)

    def rides_on(self, other: RowTask) -> bool:
        """Whether the other prompt starts with this one, and with the same fault up to its end."""
        return (
            self.group == other.group
            and other.ids[: self.length] == self.ids
            and self._fault_within(self.length) == other._fault_within(self.length)  # of our class
        )

    def _fault_within(self, length: int) -> int | None:
        start = self.corrupt_beyond
        return start if start is not None and start < length else None

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the row any more."""
        return self.future.cancelled()


@dataclass(slots=True, eq=False)
class CallTask:
    """Any function that must run on the engine thread."""

    run: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more."""
        return self.future.cancelled()


@dataclass(slots=True, eq=False)
class GenerateTask:
    """A generation of several tokens, a step at a time."""

    generation: Generation
    stream: StepStream

    @property
    def cancelled(self) -> bool:
        """Whether nobody reads the answer any more."""
        return self.stream.cancelled


Task = RowTask | CallTask | GenerateTask


def as_ringtrue_error(error: Exception) -> RingtrueError:
    """Return the error of a job as its caller may see it."""
    if isinstance(error, RingtrueError):
        return error
    wrapped = MeasureError(f"the engine failed: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
