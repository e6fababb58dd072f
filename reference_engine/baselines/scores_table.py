"""Position scores as Arrow tables: the columns of a shard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reference_engine.baselines.plan import Block
from reference_engine.position_scores import PositionScores
from ringtrue.errors import MeasureError

_STATE_TYPES = {"float32": pa.float32(), "bfloat16": pa.uint16(), "float16": pa.float16()}


def shard_schema(*, hidden_size: int, states: str | None) -> pa.Schema:
    """Return the schema of every shard of a baseline.

    ``states`` is the dtype of the column ``state``, ``None`` for none. Arrow
    has no bfloat16: such a state is kept as the upper half of its float32, an
    unsigned integer of 16 bits.
    """
    columns = [
        pa.field("sequence", pa.int32(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("token_id", pa.int32(), nullable=False),
        pa.field("logprob", pa.float32()),
        pa.field("rank", pa.int32()),
        pa.field("top_ids", pa.list_(pa.int32())),
        pa.field("top_logprobs", pa.list_(pa.float32())),
        pa.field("tail_mass", pa.float64()),
        pa.field("entropy", pa.float64()),
    ]
    if states is not None:
        columns.append(pa.field("state", pa.list_(_STATE_TYPES[states], hidden_size)))
    return pa.schema(columns)


def to_table(
    block: Block,
    token_ids: NDArray[np.int32],
    scores: PositionScores,
    schema: pa.Schema,
    *,
    states: str | None,
) -> pa.Table:
    """Return the rows of ``block``; position 0 has nulls for scores, since nothing precedes it.

    ``token_ids`` are those of the block. The scores are one row a position,
    position 0 left out.
    """
    rows = block.rows
    unscored = rows - len(scores)  # 1 at the beginning of a sequence, else 0
    missing = np.arange(rows) < unscored
    columns: dict[str, pa.Array] = {
        "sequence": pa.array(np.full(rows, block.sequence, dtype=np.int32)),
        "position": pa.array(np.arange(block.start, block.stop, dtype=np.int32)),
        "token_id": pa.array(token_ids),
        "logprob": _column(scores.logprobs, np.float32, missing),
        "rank": _column(scores.ranks, np.int32, missing),
        "top_ids": _lists(scores.top_ids.astype(np.int32, copy=False), missing),
        "top_logprobs": _lists(scores.top_logprobs.astype(np.float32, copy=False), missing),
        "tail_mass": _column(scores.tail_mass, np.float64, missing),
        "entropy": _column(scores.entropy, np.float64, missing),
    }
    if states is not None and scores.states is not None:
        columns["state"] = _states(scores.states, states, missing)
    return pa.table(columns, schema=schema)


def from_table(table: pa.Table, *, k: int, states: str | None) -> PositionScores:
    """Return the scores in rows of one sequence, position 0 left out: the inverse of ``to_table``."""
    scored = table.filter(pc.is_valid(table["logprob"])).combine_chunks()
    rows = scored.num_rows
    entropy = scored["entropy"]
    return PositionScores(
        logprobs=_numpy(scored["logprob"]),
        ranks=_numpy(scored["rank"]).astype(np.int64),
        top_ids=_flat(scored["top_ids"]).reshape(rows, k),
        top_logprobs=_flat(scored["top_logprobs"]).reshape(rows, k),
        tail_mass=_numpy(scored["tail_mass"]),
        entropy=None if rows and entropy.null_count == rows else _numpy(entropy),
        states=None if states is None else _widened(_flat(scored["state"]), states).reshape(rows, -1),
    )


def _column(values: NDArray[Any] | None, dtype: Any, missing: NDArray[np.bool_]) -> pa.Array:
    if values is None:
        return pa.nulls(len(missing), pa.from_numpy_dtype(dtype))
    whole = np.zeros(len(missing), dtype=dtype)
    whole[~missing] = values
    return pa.array(whole, mask=missing, from_pandas=False)


def _lists(values: NDArray[Any], missing: NDArray[np.bool_]) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(np.where(missing, 0, values.shape[1]))]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(values.ravel(), from_pandas=False), mask=pa.array(missing)
    )


def _states(states: NDArray[np.float32], dtype: str, missing: NDArray[np.bool_]) -> pa.Array:
    narrow = _narrowed(states, dtype)
    whole = np.zeros((len(missing), states.shape[1]), dtype=narrow.dtype)
    whole[~missing] = narrow
    return pa.FixedSizeListArray.from_arrays(
        pa.array(whole.ravel(), from_pandas=False), states.shape[1], mask=pa.array(missing)
    )


def _narrowed(states: NDArray[np.float32], dtype: str) -> NDArray[Any]:
    """Return the states in the dtype the model computed them in: nothing is lost.

    Raises:
        MeasureError: the states have more precision than ``dtype`` holds.
    """
    if dtype == "float32":
        return states
    if dtype == "float16":
        with np.errstate(over="ignore"):  # what overflows is refused below
            narrow: NDArray[Any] = states.astype(np.float16)
    else:
        narrow = (np.ascontiguousarray(states).view(np.uint32) >> 16).astype(np.uint16)
    if not np.array_equal(_widened(narrow, dtype), states):
        raise MeasureError(f"the hidden states do not fit into {dtype}, in which the model computes")
    return narrow


def _widened(stored: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    if dtype == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32, copy=False)


def _numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    return column.to_numpy()  # type: ignore[no-any-return]  # pyarrow has no types


def _flat(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return the elements of all lists of a column."""
    return column.combine_chunks().flatten().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
