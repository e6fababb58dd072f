import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from reference_engine.baselines.integrity import check_files
from reference_engine.baselines.plan import Layout
from reference_engine.baselines.reading import Baseline, open_baseline, require_same_tokens
from reference_engine.position_scores import PositionScores
from ringtrue.errors import ModelError, StoreError, UsageError
from tests.small_models import byte_level_tokenizer
from tests.unit.reference_engine.baselines.sources import TINY, ChangedScores, build, contents


async def all_scores(source, ids, *, k=20, states=False, rows=10_000):
    blocks = source.score(ids.tolist(), k=k, states=states, rows_per_block=rows)
    return PositionScores.joined([block async for block in blocks])


@pytest.mark.parametrize(
    "layout", [TINY, Layout(), Layout(block_bytes=1, shard_bytes=1, shard_rows=1), Layout(shard_rows=1)]
)
async def test_every_sequence_comes_back_whole_however_it_was_cut(small, corpus, source, store, layout):
    stored = await build(small, corpus, source, store, layout=layout, states=True)
    baseline = open_baseline(stored.id[:8], store)
    rows = stored.manifest.request.rows_per_block
    found = list(baseline.sequences())
    assert [sequence.index for sequence in found] == list(range(len(corpus)))
    for sequence, asked in zip(found, corpus, strict=True):
        assert np.array_equal(sequence.token_ids, asked.token_ids)
        expected = await all_scores(source, asked.token_ids, states=True, rows=rows)
        for name in ("logprobs", "ranks", "top_ids", "top_logprobs", "tail_mass", "entropy", "states"):
            assert np.array_equal(getattr(sequence.scores, name), getattr(expected, name)), name
    baseline.close()


async def test_sequences_can_be_picked_in_any_order(small, corpus, source, store):
    baseline = Baseline(await build(small, corpus, source, store))
    picked = list(baseline.sequences([5, 0, 5]))
    assert [len(sequence.token_ids) for sequence in picked] == [90, 2, 90]
    assert len(baseline) == 7


async def test_a_sequence_can_be_read_in_pieces_no_larger_than_a_row_group(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    pieces = list(Baseline(stored).blocks(5))
    assert len(pieces) > 3
    assert max(len(scores) for _, scores in pieces) <= stored.manifest.request.rows_per_block
    assert [len(ids) - len(scores) for ids, scores in pieces] == [1] + [0] * (len(pieces) - 1)
    assert np.array_equal(np.concatenate([ids for ids, _ in pieces]), corpus.sequences[5].token_ids)


async def test_scores_without_entropy_come_back_without(small, corpus, source, store):
    served = ChangedScores(source, lambda _, block: replace(block, entropy=None))
    baseline = Baseline(await build(small, corpus, served, store))
    assert [sequence.scores.entropy for sequence in baseline.sequences()] == [None] * len(corpus)


async def test_the_stored_states_give_the_whole_distribution(small, small_engine, corpus, source, store):
    stored = await build(small, corpus, source, store, states=True, k=5)
    for sequence in Baseline(stored).sequences():
        states = torch.from_numpy(sequence.scores.states.copy())
        logprobs = small_engine.call(
            torch.inference_mode()(lambda states=states: torch.log_softmax(small.head(states), -1).numpy())
        ).result()
        best = np.sort(logprobs, axis=1)[:, ::-1][:, :5]
        there = logprobs[np.arange(len(logprobs)), sequence.token_ids[1:]]
        assert np.abs(best - sequence.scores.top_logprobs).max() <= 1e-5
        assert np.abs(there - sequence.scores.logprobs).max() <= 1e-5


@pytest.mark.parametrize("index", [-1, 7])
async def test_a_sequence_that_is_not_there_is_named(small, corpus, source, store, index):
    baseline = Baseline(await build(small, corpus, source, store))
    with pytest.raises(UsageError, match=f"no sequence {index}.*0 to 6"):
        list(baseline.sequences([index]))


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def _cut(path):
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_flip, "is corrupt"),
        (_cut, "bytes long instead of"),
        (lambda path: path.unlink(), "cannot be read: No such file"),
    ],
)
async def test_a_damaged_shard_is_named_when_it_is_first_needed(
    small, corpus, source, store, damage, message
):
    stored = await build(small, corpus, source, store)
    broken = stored.folder / stored.manifest.shards[2].file
    damage(broken)
    baseline = Baseline(stored)
    assert [len(sequence.token_ids) for sequence in baseline.sequences([0, 1])] == [2, 47]
    with pytest.raises(StoreError, match=rf"{broken}: .*{message}.*Delete .* and build"):
        list(baseline.sequences())
    checked = list(check_files(stored))
    assert [file.path for file in checked if file.damage] == [broken]
    assert message in str(next(file.damage for file in checked if file.damage))


async def test_an_undamaged_baseline_checks_every_shard_and_its_folder(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    before = contents(stored.folder)
    checked = list(check_files(stored))
    expected = [stored.folder / shard.file for shard in stored.manifest.shards]
    assert [file.path for file in checked] == [*expected, stored.folder]
    assert not any(file.damage for file in checked)
    assert contents(stored.folder) == before


async def test_a_file_that_does_not_belong_is_named(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    (stored.folder / "notes.txt").write_text("mine")
    assert "holds notes.txt" in str(list(check_files(stored))[-1].damage)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["entropy"]), "other columns"),
        (lambda table: table.slice(1), "rows, its manifest says"),
        (None, "no Parquet file"),
    ],
)
async def test_a_shard_that_is_not_what_the_manifest_says_is_named(
    small, corpus, source, store, change, message
):
    stored = await build(small, corpus, source, store)
    shard = stored.manifest.shards[0]
    path = stored.folder / shard.file
    if change is None:
        path.write_bytes(b"PAR1 not really")
    else:
        pq.write_table(change(pq.read_table(path)), path)
    data = path.read_bytes()
    forged = replace(shard, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
    manifest = replace(stored.manifest, shards=(forged, *stored.manifest.shards[1:]))
    first = next(check_files(replace(stored, manifest=manifest)))
    assert message in str(first.damage)


async def test_a_model_with_the_same_tokens_may_be_compared(small, small_engine, corpus, source, store):
    baseline = Baseline(await build(small, corpus, source, store))
    require_same_tokens(baseline, small)
    require_same_tokens(baseline, small_engine.load(f"{small.name}@int4+bf16"))


async def test_a_tokenizer_of_another_model_is_refused(
    small, small_engine, small_model, corpus, source, store, tmp_path
):
    baseline = Baseline(await build(small, corpus, source, store))
    other = shutil.copytree(small_model, tmp_path / "other")
    file = other / "tokenizer.json"
    file.write_text(_swapped(file.read_text()))
    model = small_engine.load(str(other))
    with pytest.raises(ModelError, match=r"the tokenizer of .*other gives other IDs.*same tokenizer"):
        require_same_tokens(baseline, model)


async def test_another_vocabulary_is_refused(small, small_engine, corpus, source, store, tmp_path):
    baseline = Baseline(await build(small, corpus, source, store))
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        LlamaForCausalLM(config).save_pretrained(tmp_path / "wide")
    byte_level_tokenizer().save_pretrained(tmp_path / "wide")
    model = small_engine.load(str(tmp_path / "wide"))
    with pytest.raises(ModelError, match=r"over 258 tokens, those of .*wide over 300"):
        require_same_tokens(baseline, model)


def _swapped(text):
    """The tokenizer with the IDs of two characters exchanged."""
    body = json.loads(text)
    vocabulary = body["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    return json.dumps(body)
