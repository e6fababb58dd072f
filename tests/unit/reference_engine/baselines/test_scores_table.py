import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_engine.baselines.plan import Block
from reference_engine.baselines.scores_table import from_table, shard_schema, to_table
from reference_engine.position_scores import PositionScores
from ringtrue.errors import MeasureError


def scores(rows, k, *, hidden=None, entropy=True, seed=0):
    rng = np.random.default_rng(seed)
    states = None if hidden is None else rng.normal(size=(rows, hidden)).astype(np.float16).astype(np.float32)
    return PositionScores(
        logprobs=-rng.exponential(size=rows).astype(np.float32),
        ranks=rng.integers(1, 50_000, size=rows),
        top_ids=rng.integers(0, 50_000, size=(rows, k), dtype=np.int32),
        top_logprobs=-np.sort(rng.exponential(size=(rows, k))).astype(np.float32),
        tail_mass=rng.random(rows),
        entropy=rng.random(rows) if entropy else None,
        states=states,
    )


def round_trip(block, given, states):
    ids = np.arange(block.rows, dtype=np.int32)
    hidden = 0 if given.states is None else given.states.shape[1]
    schema = shard_schema(hidden_size=hidden, states=states)
    table = to_table(block, ids, given, schema, states=states)
    assert table.schema.equals(schema)
    assert table["token_id"].to_numpy().tolist() == ids.tolist()
    assert table["position"].to_numpy().tolist() == list(range(block.start, block.stop))
    return table, from_table(table, k=given.top_ids.shape[1], states=states)


def assert_same(one, other):
    for name in ("logprobs", "ranks", "top_ids", "top_logprobs", "tail_mass", "entropy", "states"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            assert np.array_equal(a, b), name


@given(
    st.integers(1, 30),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "float32", "float16"]),
    st.integers(0, 2**32 - 1),
)
def test_scores_come_back_as_they_were_stored(rows, k, first, entropy, states, seed):
    given_scores = scores(rows, k, hidden=4 if states else None, entropy=entropy, seed=seed)
    block = Block(7, 0, rows + 1) if first else Block(7, 40, 40 + rows)
    table, back = round_trip(block, given_scores, states)
    assert table["logprob"].null_count == int(first)
    assert_same(given_scores, back)


def test_the_first_position_has_no_scores_at_all():
    table, _ = round_trip(Block(0, 0, 4), scores(3, 2, hidden=4), "float32")
    row = table.slice(0, 1).to_pylist()[0]
    assert {name: value for name, value in row.items() if value is None} == dict.fromkeys(
        ("logprob", "rank", "top_ids", "top_logprobs", "tail_mass", "entropy", "state")
    )


def test_bfloat16_states_are_stored_in_half_the_room_and_come_back_exactly():
    exact = np.array([[1.0, -2.5], [3.140625, 2.0**-130], [0.0, -1e38]], dtype=np.float32)
    exact = ((exact.view(np.uint32) >> 16) << 16).view(np.float32)
    given_scores = PositionScores(
        *(
            getattr(scores(3, 2), n)
            for n in ("logprobs", "ranks", "top_ids", "top_logprobs", "tail_mass", "entropy")
        ),
        states=exact,
    )
    table, back = round_trip(Block(0, 1, 4), given_scores, "bfloat16")
    assert str(table.schema.field("state").type.value_type) == "uint16"
    assert np.array_equal(back.states, exact)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("value", [1.0001, 70_001.0])
def test_a_state_that_would_lose_something_is_refused(dtype, value):
    given_scores = scores(1, 2, hidden=2)
    given_scores.states[0, 0] = value
    with pytest.raises(MeasureError, match=f"do not fit into {dtype}"):
        round_trip(Block(0, 1, 2), given_scores, dtype)


def test_a_probability_of_zero_is_stored_as_it_is():
    given_scores = scores(2, 3)
    given_scores.top_logprobs[:, 2] = -np.inf
    _, back = round_trip(Block(0, 1, 3), given_scores, None)
    assert_same(given_scores, back)
