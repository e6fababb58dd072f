from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from reference_engine.recomputation import Recomputed, recompute
from ringtrue.errors import UsageError

SEQUENCES = [tuple(range(3 * n, 3 * n + 9 * n + 2)) for n in (1, 2, 3)]
K = 4


@pytest.fixture(scope="module")
def own_engine() -> Iterator[Engine]:
    with Engine(device="cpu") as engine:
        yield engine


@pytest.fixture(scope="module")
def model(own_engine: Engine, small_model: Path) -> LoadedModel:
    return own_engine.load(str(small_model))


async def _recompute(engine: Engine, model: LoadedModel, *, seed: int = 0) -> list[Recomputed]:
    wanted = [np.tile(np.array([5, 9], np.int32), (len(ids) - 1, 1)) for ids in SEQUENCES]
    return await recompute(engine, model, SEQUENCES, wanted, k=K, dtype="bf16", seed=seed)


def _rows(model: LoadedModel, ids: tuple[int, ...]) -> torch.Tensor:
    with torch.inference_mode():
        return torch.log_softmax(model.network(torch.tensor([ids])).logits[0, :-1].float(), dim=-1)


async def test_exact_columns_equal_a_plain_call(own_engine: Engine, model: LoadedModel) -> None:
    for ids, found in zip(SEQUENCES, await _recompute(own_engine, model), strict=True):
        rows = _rows(model, ids)
        assert np.array_equal(found.exact, rows[:, [5, 9]].numpy())
        listed = torch.tensor(found.honest.top_ids, dtype=torch.long)
        assert np.array_equal(found.exact_honest, rows.gather(1, listed).numpy())


async def test_the_honest_scores_are_those_of_the_lower_dtype(own_engine: Engine, model: LoadedModel) -> None:
    lower = own_engine.load(model.name.with_dtype("bf16"))
    for ids, found in zip(SEQUENCES, await _recompute(own_engine, model), strict=True):
        rows = _rows(lower, ids)
        own = rows[range(len(ids) - 1), ids[1:]].numpy()
        assert found.honest.top_ids.shape == (len(ids) - 1, K)
        assert np.allclose(found.honest.logprobs, own, atol=0.05)
        assert not np.array_equal(found.honest.top_logprobs, found.exact_honest)


async def test_the_seed_decides_the_jitter(own_engine: Engine, model: LoadedModel) -> None:
    first, again = await _recompute(own_engine, model), await _recompute(own_engine, model)
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.honest.top_logprobs, other.honest.top_logprobs)


async def test_a_sequence_beyond_the_context_is_refused(own_engine: Engine, model: LoadedModel) -> None:
    ids = [1] * 257
    with pytest.raises(UsageError, match="257 tokens"):
        await recompute(own_engine, model, [ids], [np.zeros((256, 1), np.int32)], k=1, dtype="bf16", seed=0)
