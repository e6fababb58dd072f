"""Building a baseline: scores in, shards out, and on from where a killed build stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_engine.baselines.corpus import Corpus
from reference_engine.baselines.durable import sync_folder
from reference_engine.baselines.in_order import in_order
from reference_engine.baselines.manifest import BaselineRequest, Manifest, Shard
from reference_engine.baselines.plan import PlacedBlock, Plan, make_plan
from reference_engine.baselines.scores_table import shard_schema, to_table
from reference_engine.baselines.shards import ShardWriter
from reference_engine.baselines.soundness import require_sound
from reference_engine.baselines.store import BaselineStore, StoredBaseline
from reference_engine.baselines.unfinished import described_shard, kept_shards, publish
from reference_engine.position_scores import PositionScores, ScoreSource
from ringtrue.errors import MeasureError, StoreError, UsageError
from ringtrue.progress import ProgressReport

_PART = "tokens"


@dataclass(frozen=True, slots=True)
class Build:
    """One baseline to build.

    ``in_flight`` sequences are asked of the source at once: a server gains by
    several, the engine thread does not. ``evidence`` goes into the manifest.
    """

    corpus: Corpus
    request: BaselineRequest
    in_flight: int = 1
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """How its rows are divided; it follows from corpus and request."""
        lengths = [len(sequence) for sequence in self.corpus]
        return make_plan(lengths, row_bytes=self.request.row_bytes, layout=self.request.layout)


async def build_baseline(
    build: Build, source: ScoreSource, store: BaselineStore, progress: ProgressReport
) -> tuple[StoredBaseline, bool]:
    """Return the baseline, and whether it had to be built: an equal request is built once.

    Shards that a killed build left are kept if their bytes are whole; the
    rest is computed. An exact source so ends with the same bytes, wherever it
    was killed.

    Raises:
        UsageError: the source cannot score some sequence, or so many alternatives.
        MeasureError: the source failed, or gave something that is not a number;
            nothing of that sequence's shard is stored, what was before stays.
        StoreError: another process builds the same baseline, or the disk refuses.
    """
    _require_scorable(build, source)
    try:
        store.root.mkdir(parents=True, exist_ok=True)
        with store.lock(build.request):
            if (found := store.find(build.request)) is not None:
                return found, False
            folder = store.partial(build.request)
            folder.mkdir(exist_ok=True)
            sync_folder(store.root)
            plan = build.plan
            shards = kept_shards(folder, plan)
            if shards:
                progress.say(f"going on from {len(shards)} of {len(plan.shards)} shards")
            shards |= await _write_missing(build, plan, source, folder, shards, progress)
            in_order_of_index = tuple(shards[index] for index in sorted(shards))
            manifest = Manifest(build.request, in_order_of_index, build.evidence)
            return publish(store, folder, manifest), True
    except OSError as error:
        raise StoreError(
            f"the baseline cannot be written: {error.strerror or error}",
            where=str(error.filename or store.root),
            remedy="Mend that and give the same command: it goes on from what is stored",
        ) from error


def _require_scorable(build: Build, source: ScoreSource) -> None:
    for sequence in build.corpus:
        if len(sequence) > source.context_length:
            raise UsageError(
                f"the sequence has {len(sequence):,} tokens, the source takes {source.context_length:,}",
                where=sequence.where,
                remedy="Shorten it, or raise the limit of the server",
            )
    if not 1 <= build.request.k <= source.vocabulary_size:
        raise UsageError(
            f"k is {build.request.k}, it can be 1 to {source.vocabulary_size}",
            remedy="Give another number with --k",
        )


async def _write_missing(
    build: Build,
    plan: Plan,
    source: ScoreSource,
    folder: Path,
    kept: Mapping[int, Shard],
    progress: ProgressReport,
) -> dict[int, Shard]:
    """Compute every shard that is not in ``kept``, and return those by their index."""
    request = build.request
    schema = shard_schema(hidden_size=request.model.hidden_size, states=request.states)
    due = [placed for placed in plan.by_sequence() if any(shard not in kept for shard, _ in placed)]
    progress.begin(_PART, sum(block.rows for placed in due for shard, block in placed if shard not in kept))
    streams = (_scored(build, source, placed) for placed in due)
    written: dict[int, Shard] = {}
    writer: ShardWriter | None = None
    try:
        async with aclosing(in_order(streams, build.in_flight)) as scored:
            async for (shard, block), scores in scored:
                if shard in kept:
                    continue
                writer = writer or ShardWriter(folder, shard, plan.group_rows(shard), schema)
                ids = build.corpus.sequences[block.sequence].token_ids[block.start : block.stop]
                writer.add(to_table(block, ids, scores, schema, states=request.states))
                if writer.complete:
                    written[shard] = described_shard(plan, shard, *writer.finish())
                    writer = None
                progress.advance(_PART, block.rows)
    finally:
        if writer is not None:
            writer.abandon()
    return written


async def _scored(
    build: Build, source: ScoreSource, placed: Sequence[PlacedBlock]
) -> AsyncGenerator[tuple[PlacedBlock, PositionScores], None]:
    """Yield the blocks of one sequence with their scores."""
    request, index = build.request, placed[0].block.sequence
    sequence = build.corpus.sequences[index]
    where = f"sequence {index} ({sequence.where})"
    hidden_size = request.model.hidden_size if request.states else None
    blocks = source.score(
        sequence.token_ids.tolist(),
        k=request.k,
        states=request.states is not None,
        rows_per_block=request.rows_per_block,
    )
    given = 0
    try:
        async with aclosing(blocks):
            async for scores in blocks:
                due = _due(placed, given)
                require_sound(scores, due.block, k=request.k, hidden_size=hidden_size)
                yield due, scores
                given += 1
    except MeasureError as error:
        place = where if error.where is None else f"{where}, {error.where}"
        raise MeasureError(error.message, where=place, remedy=error.remedy) from error
    if given < len(placed):
        raise MeasureError(f"the source gave {given} of {len(placed)} blocks", where=where)


def _due(placed: Sequence[PlacedBlock], given: int) -> PlacedBlock:
    if given == len(placed):
        raise MeasureError(f"the source gave more than the {given} blocks that are due")
    return placed[given]
