import numpy as np
import pytest

from reference_engine.scoring import next_token_logprobs

TEXT = "Nothing before the border may change, everything after it must. " * 6
BORDER = 30


@pytest.fixture(scope="module")
def model(engine):
    return engine.load("smollm2-135m")


async def test_corruption_leaves_every_position_before_its_border_alone(engine, model, reference):
    ids = reference.encode(TEXT)[:60]
    clean = await engine.score_prompt(model, ids, 1)
    faulty = await engine.score_prompt(model, ids, 1, corrupt_beyond=BORDER)
    # Entry i scores the token after position i.
    assert np.array_equal(clean.logprobs[:BORDER], faulty.logprobs[:BORDER])
    assert np.abs(clean.logprobs[BORDER:] - faulty.logprobs[BORDER:]).mean() > 0.5


async def test_corruption_is_deterministic(engine, model, reference):
    ids = reference.encode(TEXT)[:60]
    first = await engine.score_prompt(model, ids, 1, corrupt_beyond=BORDER)
    second = await engine.score_prompt(model, ids, 1, corrupt_beyond=BORDER)
    assert np.array_equal(first.logprobs, second.logprobs)


def test_a_corrupted_row_does_not_touch_its_batch(engine, model, reference):
    ids = reference.encode(TEXT)[:60]
    rows = engine.call(lambda: next_token_logprobs(model, [ids, ids], beyond=[None, BORDER])).result()
    clean = engine.call(lambda: next_token_logprobs(model, [ids, ids])).result()
    assert np.array_equal(rows[0].numpy(), clean[0].numpy())
    assert np.abs(rows[1].numpy() - clean[1].numpy()).mean() > 0.5


def test_the_border_holds_across_prefill_chunks(engine, model, reference):
    ids = reference.encode(TEXT)[:60]

    def row(splits, beyond):
        return (
            engine.call(lambda: next_token_logprobs(model, [ids], splits=splits, beyond=[beyond]))
            .result()[0]
            .numpy()
        )

    assert np.abs(row((20, 45), BORDER) - row((), BORDER)).max() <= 2e-4
    assert np.array_equal(row((20,), 60), row((20,), None))
