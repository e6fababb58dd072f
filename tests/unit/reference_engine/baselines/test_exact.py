import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from reference_engine.baselines.corpus_files import read_corpus
from reference_engine.baselines.exact import ExactScores
from reference_engine.baselines.reading import Baseline
from ringtrue.errors import MeasureError
from tests.unit.reference_engine.baselines.sources import build

TEXT = (
    "The tide turns twice a day. Fishermen who live by the harbour know its hours by heart, "
    "and so do the gulls. In the year 1492, three ships left a harbour like this one. "
) * 4


async def test_a_baseline_of_the_embedded_model_agrees_with_its_own_prompt_scores(engine, store, tmp_path):
    model = engine.load("smollm2-135m")
    (tmp_path / "tide.txt").write_text(TEXT)
    corpus = read_corpus([tmp_path / "tide.txt"], model, length=64)
    stored = await build(model, corpus, ExactScores(engine, model), store, k=10)
    sequences = list(Baseline(stored).sequences())
    assert sum(len(sequence.token_ids) for sequence in sequences) == len(model.codec.encode(TEXT))
    for sequence in sequences:
        scores = await engine.score_prompt(model, sequence.token_ids.tolist(), 10)
        assert np.abs(sequence.scores.logprobs - scores.logprobs).max() <= 2e-4
        assert (sequence.scores.ranks == 1).sum() == (scores.ranks == 1).sum()
        assert (sequence.scores.entropy > 0).all()
        assert (sequence.scores.tail_mass < 1).all()


async def test_a_baseline_goes_up_to_the_context_limit(small, small_engine, store, tmp_path):
    (tmp_path / "long.txt").write_text("ab" * 256)
    corpus = read_corpus([tmp_path / "long.txt"], small, length=256)
    stored = await build(small, corpus, ExactScores(small_engine, small), store)
    assert [len(sequence.scores) for sequence in Baseline(stored).sequences()] == [255, 255]


async def test_a_model_whose_numbers_overflow_is_named_with_sequence_and_layer(
    small_engine, small_model, corpus, store, tmp_path
):
    folder = shutil.copytree(small_model, tmp_path / "broken")
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][3, 5] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model = small_engine.load(str(folder))
    with pytest.raises(MeasureError, match=r"layer 1, mlp\.up_proj at position 0") as caught:
        await build(model, corpus, ExactScores(small_engine, model), store)
    assert caught.value.where.startswith("sequence 0 (here:1), ")
    assert store.ids() == []
    assert not list(store.root.glob(".partial-*/*"))
