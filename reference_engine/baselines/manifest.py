"""What a baseline is, in one file: everything its content depends on, and the hashes of its shards."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter, ValidationError

from reference_engine.baselines.plan import Layout, row_bytes
from ringtrue.errors import NewerStoreError, StoreError

SCHEMA = 1
"""Version of the manifest and of the columns; raised when an older ringtrue could no longer read them."""

STATE_BYTES: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
"""The dtypes a hidden state can be stored in, with the bytes of one number."""

StateDtype = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The model whose distributions are stored. Hashes are 64 hex digits."""

    name: str
    fingerprint: str
    weights: str
    tokenizer: str
    template: str | None
    dtype: str
    vocabulary_size: int
    hidden_size: int
    context_length: int


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """The sequences it was asked about: their hash (``Corpus.digest``), how many, and their tokens."""

    digest: str
    sequences: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Environment:
    """What else the last bit of a number may depend on.

    ``device`` is ``cpu`` or ``cuda``; ``processor`` its instruction set or
    name; ``threads`` those of one CPU operation. ``versions`` by library.
    """

    device: str
    processor: str
    threads: int
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BaselineRequest:
    """What was asked for. Equal requests to an exact source give equal bytes.

    ``states`` is the dtype of the stored hidden states, ``None`` for none.
    ``source`` says who computed the scores: ``{"kind": "exact"}`` for the
    reference engine, more for a server, and nothing that may differ between
    two runs of one command.
    """

    model: ModelFacts
    corpus: CorpusFacts
    k: int
    states: StateDtype | None
    environment: Environment
    layout: Layout = field(default_factory=Layout)
    source: Mapping[str, Any] = field(default_factory=lambda: {"kind": "exact"})

    @property
    def state_bytes(self) -> int:
        """The size of one stored hidden state."""
        return 0 if self.states is None else STATE_BYTES[self.states] * self.model.hidden_size

    @property
    def row_bytes(self) -> int:
        """The size of a row before compression."""
        return row_bytes(self.k, self.state_bytes)

    @property
    def rows_per_block(self) -> int:
        """How many positions are scored together."""
        return self.layout.block_rows(self.row_bytes)

    def digest(self) -> str:
        """Return the sha256 of the canonical JSON, as 64 hex digits."""
        return hashlib.sha256(_canonical({"schema": SCHEMA, **asdict(self)})).hexdigest()


@dataclass(frozen=True, slots=True)
class Shard:
    """One Parquet file: the sha256 and size of its bytes, its rows, and the sequences they belong to."""

    file: str
    sha256: str
    bytes: int
    rows: int
    first_sequence: int
    last_sequence: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole baseline. ``evidence`` holds what was found out about the source while it was built."""

    request: BaselineRequest
    shards: tuple[Shard, ...]
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the file: canonical JSON, whose sha256 is the baseline's id."""
        return _canonical({"schema": SCHEMA, **asdict(self)})

    @property
    def id(self) -> str:
        """The sha256 of ``to_bytes``, as 64 hex digits."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @property
    def rows(self) -> int:
        """Rows in all shards: one a token."""
        return sum(shard.rows for shard in self.shards)

    @property
    def bytes(self) -> int:
        """The size of all shards on disk."""
        return sum(shard.bytes for shard in self.shards)


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Return the manifest in ``data``.

    Raises:
        NewerStoreError: a newer ringtrue wrote it.
        StoreError: it is damaged; ``where`` is named.
    """
    try:
        body = orjson.loads(data)
        schema = body.pop("schema")
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise _damaged("is no JSON object with a schema", where) from error
    if not isinstance(schema, int) or schema < 1:
        raise _damaged("has no usable schema", where)
    if schema > SCHEMA:
        raise NewerStoreError(
            f"a newer ringtrue wrote this baseline (schema {schema}, this one reads {SCHEMA})",
            where=where,
            remedy="Upgrade ringtrue",
        )
    try:
        return TypeAdapter(Manifest).validate_python(body)
    except ValidationError as error:
        first = error.errors()[0]
        raise _damaged(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", where) from error


def _damaged(what: str, where: str) -> StoreError:
    return StoreError(
        f"the manifest is damaged: {what}",
        where=where,
        remedy="Delete the baseline's folder and build it again",
    )


def _canonical(body: Mapping[str, Any]) -> bytes:
    options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(body, option=options)
