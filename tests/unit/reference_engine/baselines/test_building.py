import asyncio
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from reference_engine.baselines import durable
from reference_engine.baselines.building import Build, build_baseline
from reference_engine.baselines.corpus import Corpus, TokenSequence
from reference_engine.baselines.durable import DurableFile
from reference_engine.baselines.exact import ExactScores
from reference_engine.baselines.plan import Layout
from reference_engine.baselines.store import BaselineStore
from ringtrue.errors import MeasureError, StoreError, UsageError
from tests.unit.reference_engine.baselines.sources import (
    ChangedScores,
    build,
    contents,
    quiet,
    tiny_request,
)


@pytest.fixture(scope="module")
def whole(small, corpus, source, tmp_path_factory):
    """What a build that nothing disturbed leaves under the store's root."""
    store = BaselineStore(tmp_path_factory.mktemp("whole"))
    asyncio.run(build(small, corpus, source, store))
    return contents(store.root)


class Killed(BaseException):
    """The process ends here."""


class Mortal:
    """Lets so many steps of a build reach the disk, and then none: not even those that clean up."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.dead = False

    def step(self, function, *arguments, **options):
        if self.dead or self.left == 0:
            self.dead = True
            raise Killed
        self.left -= 1
        return function(*arguments, **options)


@pytest.fixture
def mortal(monkeypatch) -> Iterator[Mortal]:
    life = Mortal(-1)

    def watched(function):
        return lambda *arguments, **options: life.step(function, *arguments, **options)

    for owner, name in (
        (Path, "mkdir"),
        (Path, "rename"),
        (Path, "replace"),
        (Path, "unlink"),
        (DurableFile, "write"),
        (durable.os, "fsync"),
    ):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    return life


async def test_a_baseline_holds_what_the_engine_says(small, small_engine, corpus, source, store):
    stored = await build(small, corpus, source, store)
    tables = [pq.read_table(stored.folder / shard.file) for shard in stored.manifest.shards]
    assert len(tables) > 3
    rows = [row for table in tables for row in table.to_pylist()]
    assert [(row["sequence"], row["position"]) for row in rows] == [
        (index, position) for index, ids in enumerate(corpus) for position in range(len(ids))
    ]
    assert [row["token_id"] for row in rows] == np.concatenate([s.token_ids for s in corpus]).tolist()
    scores = await small_engine.score_prompt(small, corpus.sequences[3].token_ids.tolist(), 20)
    mine = [row for row in rows if row["sequence"] == 3]
    assert mine[0]["logprob"] is None
    assert np.abs([row["logprob"] for row in mine[1:]] - scores.logprobs).max() <= 2e-4
    assert [row["rank"] for row in mine[1:]] == scores.ranks.tolist()
    assert np.array_equal([row["top_ids"] for row in mine[1:]], scores.top_ids)
    inside = np.exp(np.array([row["top_logprobs"] for row in mine[1:]], dtype=np.float64)).sum(axis=1)
    assert np.allclose(inside + [row["tail_mass"] for row in mine[1:]], 1, atol=1e-6)


async def test_the_folder_is_named_by_its_content_and_holds_nothing_else(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    files = {file.name for file in stored.folder.iterdir()}
    assert files == {"manifest.json", *(shard.file for shard in stored.manifest.shards)}
    assert {entry.name for entry in store.root.iterdir()} == {stored.id}
    assert stored.manifest.rows == corpus.tokens
    assert max(shard.rows for shard in stored.manifest.shards) <= 50


async def test_two_builds_of_one_request_have_the_same_bytes(small, corpus, source, whole, store):
    await build(small, corpus, source, store)
    assert contents(store.root) == whole


@pytest.mark.parametrize("in_flight", [2, 100])
async def test_several_sequences_at_once_change_no_byte(small, corpus, source, whole, store, in_flight):
    order = Build(corpus, tiny_request(small, corpus), in_flight=in_flight)
    await build_baseline(order, source, store, quiet())
    assert contents(store.root) == whole


async def test_a_finished_baseline_is_found_and_not_built_again(small, corpus, source, store):
    order = Build(corpus, tiny_request(small, corpus))
    first, new = await build_baseline(order, source, store, quiet())
    asked = len(source.asked)
    second, again = await build_baseline(order, source, store, quiet())
    assert (first, new, again) == (second, True, False)
    assert len(source.asked) == asked


async def test_killed_at_any_step_a_build_resumes_and_ends_with_the_same_bytes(
    small, corpus, source, mortal, tmp_path
):
    few = Corpus(corpus.sequences[:4])
    undisturbed = BaselineStore(tmp_path / "undisturbed")
    await build(small, few, source, undisturbed, k=3)
    steps, survived = 0, False
    while not survived:
        store = BaselineStore(tmp_path / str(steps))
        mortal.left, mortal.dead = steps, False
        try:
            await build(small, few, source, store, k=3)
            survived = True
        except Killed:
            mortal.left, mortal.dead = -1, False
            await build(small, few, source, store, k=3)
        assert contents(store.root) == contents(undisturbed.root), f"after {steps} steps"
        shutil.rmtree(store.root)
        steps += 1
    assert steps > 100


async def test_killed_again_and_again_a_build_gets_on(small, corpus, source, whole, mortal, store):
    tries, finished = 0, False
    while not finished and tries < 99:
        mortal.left, mortal.dead = 150, False
        tries += 1
        with suppress(Killed):
            await build(small, corpus, source, store)
            finished = True
    assert tries > 2
    assert contents(store.root) == whole


async def test_a_resumed_build_computes_only_what_is_missing(small, corpus, source, store):
    failing = ChangedScores(source, _fails_at(len(corpus.sequences[5])))
    with pytest.raises(MeasureError):
        await build(small, corpus, failing, store)
    before = len(source.asked)
    await build(small, corpus, source, store)
    resumed = source.asked[before:]
    assert set(resumed) < {len(sequence) for sequence in corpus}
    assert len(corpus.sequences[5]) in resumed


async def test_a_damaged_shard_of_an_earlier_run_is_built_again(small, corpus, source, whole, store):
    with pytest.raises(MeasureError):
        await build(small, corpus, ChangedScores(source, _fails_at(33)), store)
    folder = store.partial(tiny_request(small, corpus))
    shards = sorted(folder.glob("*.parquet"))
    shards[1].write_bytes(shards[1].read_bytes()[:-1] + b"x")
    (folder / "00099.tmp").write_bytes(b"half")
    await build(small, corpus, source, store)
    assert contents(store.root) == whole


async def test_another_request_does_not_mix_with_a_half_built_one(small, corpus, source, whole, store):
    with pytest.raises(MeasureError):
        await build(small, corpus, ChangedScores(source, _fails_at(90)), store)
    other = await build(small, corpus, source, store, k=3)
    assert other.manifest.request.k == 3
    finished = await build(small, corpus, source, store)
    shutil.rmtree(other.folder)
    assert finished.id != other.id
    assert contents(store.root) == whole


async def test_a_second_build_of_the_same_request_is_refused_while_the_first_runs(
    small, corpus, source, store
):
    entered, release = asyncio.Event(), asyncio.Event()

    class Held(ChangedScores):
        async def score(self, ids, **options):
            entered.set()
            await release.wait()
            async for block in super().score(ids, **options):
                yield block

    first = asyncio.create_task(build(small, corpus, Held(source, lambda _, block: block), store))
    await entered.wait()
    with pytest.raises(StoreError, match=r"another process is building this baseline.*Wait"):
        await build(small, corpus, source, store)
    release.set()
    assert await first == await build(small, corpus, source, store)


@pytest.mark.parametrize("column", ["logprobs", "top_logprobs", "tail_mass", "entropy"])
async def test_a_score_that_is_no_number_ends_the_build_and_is_named(small, corpus, source, store, column):
    def poisoned(ids, block):
        if len(ids) != 60:
            return block
        values = getattr(block, column).copy()
        values[7] = np.nan
        return replace(block, **{column: values})

    with pytest.raises(MeasureError, match="position 8 is not a number") as caught:
        await build(small, corpus, ChangedScores(source, poisoned), store)
    assert caught.value.where == "sequence 3 (here:4)"
    folder = store.partial(tiny_request(small, corpus))
    kept = [pq.read_table(file)["sequence"].to_pylist() for file in folder.iterdir()]
    assert kept
    assert all(max(sequences) < 3 for sequences in kept)
    await build(small, corpus, source, store)


async def test_an_infinite_state_is_no_number(small, corpus, source, store):
    def poisoned(_ids, block):
        return replace(block, states=np.full_like(block.states, np.inf))

    with pytest.raises(MeasureError, match="the state at position 1 is not a number"):
        await build(small, corpus, ChangedScores(source, poisoned), store, states=True)


async def test_where_the_source_says_it_failed_the_sequence_is_added(small, corpus, source, store):
    with pytest.raises(MeasureError) as caught:
        await build(small, corpus, ChangedScores(source, _fails_at(47)), store)
    assert str(caught.value) == "sequence 1 (here:2), the cable: it was pulled. Plug it in"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ids, block: None if len(ids) == 47 else block, "gave 0 of 3 blocks"),
        (lambda _, block: block.rows(0, len(block) - 1), r"shape \(0,\), \(1,\) is due"),
        (lambda _, block: replace(block, top_ids=block.top_ids[:, :5]), r"top_ids of shape \(1, 5\)"),
    ],
)
async def test_a_source_that_gives_other_rows_than_asked_is_refused(
    small, corpus, source, store, change, message
):
    with pytest.raises(MeasureError, match=message):
        await build(small, corpus, ChangedScores(source, change), store)


async def test_a_source_that_gives_too_many_blocks_is_refused(small, corpus, source, store):
    class Repeating(ChangedScores):
        async def score(self, ids, **options):
            async for block in super().score(ids, **options):
                yield block
            yield block

    with pytest.raises(MeasureError, match="more than the 1 blocks"):
        await build(small, corpus, Repeating(source, lambda _, block: block), store)


async def test_states_that_were_asked_for_must_come(small, corpus, source, store):
    without = ChangedScores(source, lambda _, block: replace(block, states=None))
    with pytest.raises(MeasureError, match="gave states of shape None"):
        await build(small, corpus, without, store, states=True)


async def test_a_sequence_beyond_the_source_s_context_is_refused_before_anything_is_asked(
    small, corpus, source, store
):
    short = ChangedScores(source, lambda _, block: block)
    short.context_length = 80
    with pytest.raises(UsageError, match="here:6: the sequence has 90 tokens, the source takes 80"):
        await build(small, corpus, short, store)
    assert not store.root.exists()


@pytest.mark.parametrize("k", [0, 259])
async def test_an_impossible_k_is_refused(small, corpus, source, store, k):
    with pytest.raises(UsageError, match=f"k is {k}, it can be 1 to 258"):
        await build(small, corpus, source, store, k=k)


async def test_the_whole_vocabulary_can_be_stored_in_blocks_that_stay_small(
    small, small_engine, corpus, store
):
    sizes = []
    watched = ChangedScores(
        ExactScores(small_engine, small), lambda _, block: sizes.append(len(block)) or block
    )
    layout = Layout(block_bytes=20_000, shard_bytes=100_000)
    stored = await build(small, corpus, watched, store, k=258, layout=layout)
    assert max(sizes) == layout.block_rows(stored.manifest.request.row_bytes) < 10
    for shard in stored.manifest.shards:
        table = pq.read_table(stored.folder / shard.file)
        assert table.num_rows <= layout.shard_limit(stored.manifest.request.row_bytes)
        for ids, tail in zip(table["top_ids"].to_pylist(), table["tail_mass"].to_pylist(), strict=True):
            assert ids is None or sorted(ids) == list(range(258))
            assert tail in (None, 0.0)


async def test_a_disk_that_refuses_is_a_clear_error_and_the_build_goes_on_later(
    small, corpus, source, whole, store, monkeypatch
):
    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(durable.os, "fsync", full)
        with pytest.raises(StoreError, match=r"cannot be written: No space left on device.*same command"):
            await build(small, corpus, source, store)
    await build(small, corpus, source, store)
    assert contents(store.root) == whole


async def test_a_store_that_is_a_file_is_named(small, corpus, source, store):
    store.root.write_text("no folder")
    with pytest.raises(StoreError, match="baselines: the baseline cannot be written: File exists"):
        await build(small, corpus, source, store)


async def test_a_damaged_copy_in_its_place_is_not_written_over(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    (stored.folder / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match=r"a damaged copy of this baseline is in its place.*Delete"):
        await build(small, corpus, source, store)
    shutil.rmtree(stored.folder)
    assert (await build(small, corpus, source, store)).id == stored.id


async def test_evidence_is_kept_and_does_not_decide_whether_a_build_goes_on(small, corpus, source, store):
    request = replace(tiny_request(small, corpus), source={"kind": "served", "server": "x"})
    failing = ChangedScores(source, _fails_at(33))
    with pytest.raises(MeasureError):
        await build_baseline(Build(corpus, request, evidence={"kl": 0.5}), failing, store, quiet())
    before = len(source.asked)
    order = Build(corpus, request, evidence={"kl": 0.25, "sequences": [1, 2]})
    stored, _ = await build_baseline(order, source, store, quiet())
    assert len(source.asked) - before < len(corpus)
    assert store.get(stored.id).manifest.evidence == {"kl": 0.25, "sequences": [1, 2]}


async def test_the_shortest_corpus_makes_a_baseline(small, source, store):
    one = Corpus((TokenSequence(np.array([3, 4], dtype=np.int32), "x"),))
    stored = await build(small, one, source, store)
    assert (len(stored.manifest.shards), stored.manifest.rows) == (1, 2)


def _fails_at(length):
    return partial(_fail, length)


def _fail(length, ids, block):
    if len(ids) == length:
        raise MeasureError("it was pulled", where="the cable", remedy="Plug it in")
    return block
