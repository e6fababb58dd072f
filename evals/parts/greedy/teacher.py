"""Holding greedy answers against the reference: what it would have chosen at each of their places."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logprob_drift.token_only.greedy_margins import CLIP, choice_margins, token_margins
from ringtrue.endpoint import Forced, Reference
from ringtrue.stats import Values

_LISTED = 20  # tokens of the reference among which an honest server's choice is looked up


@dataclass(frozen=True, slots=True)
class Forcing:
    """One answer, teacher-forced in the reference, token by token.

    ``margins`` [tokens] are those of its tokens (nats), and ``matches``
    [tokens] says which are the reference's own choice; ``replay_margins`` and
    ``replay_matches`` are the same of what an honest server would have chosen
    at the same places.
    """

    margins: Values
    matches: NDArray[np.bool_]
    replay_margins: Values
    replay_matches: NDArray[np.bool_]

    @property
    def tokens(self) -> int:
        """How many tokens the answer has, at least one."""
        return int(self.margins.size)


class Teacher:
    """Teacher-forces answers; equal answers to equal prompts are computed once, whoever gave them."""

    def __init__(self, reference: Reference, dtype: str) -> None:
        """Compute honest servers in ``dtype``."""
        self._reference = reference
        self._dtype = dtype
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], asyncio.Task[Forcing]] = {}

    async def hold(self, prompt: Sequence[int], answer: Sequence[int]) -> Forcing:
        """Return what the reference says of an ``answer`` of at least one token after ``prompt``.

        A token that the reference does not know ends the answer and has the
        largest margin.
        """
        key = (tuple(prompt), tuple(answer))
        task = self._known.get(key)
        if task is None or _failed(task):
            task = self._known[key] = asyncio.create_task(self._force(*key))
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        tasks = [task for task in self._known.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _force(self, prompt: tuple[int, ...], answer: tuple[int, ...]) -> Forcing:
        size = self._reference.vocabulary_size
        foreign = next((at for at, token in enumerate(answer) if not 0 <= token < size), None)
        if foreign is not None:
            # Any token will do there: the row before it does not depend on it.
            answer = (*answer[:foreign], 0)
        exact, honest = await asyncio.gather(
            self._reference.forced(prompt, answer, k=min(_LISTED, size), dtype="fp32"),
            self._reference.forced(prompt, answer, k=1, dtype=self._dtype),
        )
        return _read(answer, exact, honest.top_ids[:, 0], foreign)


def _read(answer: tuple[int, ...], exact: Forced, choices: NDArray[np.int64], foreign: int | None) -> Forcing:
    top = exact.top.astype(np.float64)
    margins = token_margins(top[:, 0], exact.chosen.astype(np.float64))
    matching = exact.top_ids[:, 0] == np.array(answer)
    if foreign is not None:
        margins[foreign] = CLIP
        matching[foreign] = False
    return Forcing(
        margins=margins,
        matches=matching,
        replay_margins=choice_margins(choices, exact.top_ids, top),
        replay_matches=exact.top_ids[:, 0] == choices,
    )


def _failed(task: asyncio.Task[Forcing]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
