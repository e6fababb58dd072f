"""Sources around the real one, and short ways to build with them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from reference_engine.baselines.building import Build, build_baseline
from reference_engine.baselines.exact import exact_request
from reference_engine.baselines.plan import Layout
from reference_engine.baselines.store import StoredBaseline
from reference_engine.position_scores import PositionScores, ScoreSource
from ringtrue.progress import Lines

# Rows of some 200 bytes: blocks of 20 positions, shards of up to 50.
TINY = Layout(block_bytes=4_000, shard_bytes=2**20, shard_rows=50)


def quiet() -> Lines:
    return Lines(Console(file=StringIO()))


def tiny_request(model, corpus, *, k=20, states=False, layout=TINY):
    return exact_request(model, corpus, k=k, states=states, layout=layout)


async def build(model, corpus, source, store, **options) -> StoredBaseline:
    stored, _ = await build_baseline(
        Build(corpus, tiny_request(model, corpus, **options)), source, store, quiet()
    )
    return stored


def contents(folder: Path) -> dict[str, str]:
    """The sha256 of every file of a folder, by its relative name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


class RememberedScores:
    """The scores of another source, each asked for once."""

    def __init__(self, source: ScoreSource) -> None:
        self._source = source
        self._known: dict[Any, list[PositionScores]] = {}
        self.asked: list[int] = []
        self.context_length = source.context_length
        self.vocabulary_size = source.vocabulary_size

    async def score(
        self, ids: Sequence[int], *, k: int, states: bool, rows_per_block: int
    ) -> AsyncGenerator[PositionScores, None]:
        self.asked.append(len(ids))
        key = (tuple(ids), k, states, rows_per_block)
        if key not in self._known:
            blocks = self._source.score(ids, k=k, states=states, rows_per_block=rows_per_block)
            self._known[key] = [block async for block in blocks]
        for block in self._known[key]:
            yield block


class ChangedScores:
    """Another source with what ``change`` makes of its blocks; ``None`` drops one."""

    def __init__(self, source: ScoreSource, change) -> None:
        self._source = source
        self._change = change
        self.context_length = source.context_length
        self.vocabulary_size = source.vocabulary_size

    async def score(
        self, ids: Sequence[int], *, k: int, states: bool, rows_per_block: int
    ) -> AsyncGenerator[PositionScores, None]:
        async for block in self._source.score(ids, k=k, states=states, rows_per_block=rows_per_block):
            changed = self._change(ids, block)
            if changed is not None:
                yield changed


def shifted(amount: float):
    """A change that moves every logprob by ``amount`` nats."""

    def change(_ids: Sequence[int], block: PositionScores) -> PositionScores:
        return replace(block, logprobs=block.logprobs + amount, top_logprobs=block.top_logprobs + amount)

    return change
