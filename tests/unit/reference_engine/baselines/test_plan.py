from hypothesis import given
from hypothesis import strategies as st

from reference_engine.baselines.plan import Layout, make_plan, row_bytes

LENGTHS = st.lists(st.integers(2, 300), min_size=1, max_size=30)
LAYOUTS = st.builds(
    Layout,
    block_bytes=st.integers(1, 20_000),
    shard_bytes=st.integers(1, 50_000),
    shard_rows=st.integers(1, 400),
)


@given(LENGTHS, st.integers(1, 500), LAYOUTS)
def test_every_position_is_in_exactly_one_block_and_in_order(lengths, k, layout):
    plan = make_plan(lengths, row_bytes=row_bytes(k, 0), layout=layout)
    covered = [
        (block.sequence, position)
        for _, block in plan.blocks()
        for position in range(block.start, block.stop)
    ]
    assert covered == [(s, p) for s, length in enumerate(lengths) for p in range(length)]
    assert plan.rows == sum(lengths)
    assert [shard for shard, _ in plan.blocks()] == sorted(shard for shard, _ in plan.blocks())


@given(LENGTHS, st.integers(1, 500), LAYOUTS)
def test_all_blocks_of_a_sequence_but_the_last_score_equally_many_positions(lengths, k, layout):
    size = row_bytes(k, 0)
    for placed in make_plan(lengths, row_bytes=size, layout=layout).by_sequence():
        scored = [block.rows - (block.start == 0) for _, block in placed]
        assert set(scored[:-1]) <= {layout.block_rows(size)}
        assert 1 <= scored[-1] <= layout.block_rows(size)


@given(LENGTHS, st.integers(1, 500), LAYOUTS)
def test_row_groups_and_shards_keep_their_size_unless_one_part_is_larger(lengths, k, layout):
    size = row_bytes(k, 0)
    plan = make_plan(lengths, row_bytes=size, layout=layout)
    for index, shard in enumerate(plan.shards):
        assert len(shard) == 1 or sum(plan.group_rows(index)) <= layout.shard_limit(size)
        for group, rows in zip(shard, plan.group_rows(index), strict=True):
            assert len(group) == 1 or rows <= layout.block_rows(size)


def test_a_row_of_the_whole_vocabulary_makes_small_blocks():
    size = row_bytes(49_152, 4 * 576)
    assert Layout().block_rows(size) * size <= 32 * 2**20
    assert Layout().shard_limit(size) * size <= 256 * 2**20


def test_a_row_wider_than_a_block_is_still_a_block():
    plan = make_plan([5], row_bytes=1_000, layout=Layout(block_bytes=10, shard_bytes=10))
    assert [(block.start, block.stop) for _, block in plan.blocks()] == [(0, 2), (2, 3), (3, 4), (4, 5)]
