"""The vocabulary of every stage: frozen records, and nothing that acts.

Units, everywhere: times of day are UTC, durations and clock readings are in
seconds, log-probabilities in nats, probabilities in [0, 1], lengths in tokens
as the endpoint's tokenizer counts them. A value that was not measured is
``None``; it is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What an endpoint is to the examination."""

    REFERENCE = "reference"
    PROVIDER = "provider"
    REPLICA = "replica"
    CANDIDATE = "candidate"


class Party(StrEnum):
    """Who has to act on a finding."""

    PROVIDER = "provider"
    MODEL = "model"
    CALLER = "caller"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """How loudly a finding speaks."""

    INFO = "info"
    WARN = "warn"
    FAIL = "fail"


class State(StrEnum):
    """The word of a verdict (docs/architecture.md, "Verdicts")."""

    OK = "OK"
    CHANGED = "CHANGED"
    WORSE = "WORSE"
    UNKNOWN = "UNKNOWN"


DRIFT = frozenset({State.CHANGED, State.WORSE})
"""The states that say something is wrong with an endpoint."""


class Cause(StrEnum):
    """The layer to blame (docs/methods.md, "Causes")."""

    CONTEXT = "context"
    IDENTITY = "identity"
    PROMPT = "prompt"
    MIXTURE = "mixture"
    SAMPLING = "sampling"
    NUMERICS = "numerics"
    PARSING = "parsing"
    PERFORMANCE = "performance"
    CALLER = "caller"
    UNKNOWN = "unknown"


class Check(StrEnum):
    """The families that get a verdict of their own."""

    LOGPROBS = "logprobs"
    CONTEXT = "context"
    SESSIONS = "sessions"
    CACHE = "cache"
    TOKENS = "tokens"
    TOOLCALLS = "toolcalls"
    OUTPUT = "output"
    SAMPLING = "sampling"
    IDENTITY = "identity"
    EVALS = "evals"
    SERVING = "serving"
    WIRE = "wire"


class Stratum(StrEnum):
    """Where an observation came from; the two are never pooled."""

    PROBE = "probe"
    LIVE = "live"


class FailureKind(StrEnum):
    """Why an exchange has no usable answer. One word a cause that a person can act on."""

    UNREACHABLE = "unreachable"  # DNS, refused, reset before any byte
    TLS = "tls"
    CONNECT_TIMEOUT = "connect_timeout"
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    READ_TIMEOUT = "read_timeout"  # silence after the first byte
    TRUNCATED = "truncated"  # the body or the stream ended early
    UNAUTHORIZED = "unauthorized"  # 401, 403
    MODEL_NOT_FOUND = "model_not_found"  # 404 that names the model
    NOT_FOUND = "not_found"  # another 404, 405: no such route
    RATE_LIMITED = "rate_limited"  # 429
    REFUSED = "refused"  # 400, 413, 422: the request was not accepted
    CAPABILITY_REFUSED = "capability_refused"  # 400 about logprobs, k, token IDs
    SERVER_ERROR = "server_error"  # 5xx
    NOT_JSON = "not_json"  # invalid JSON
    HTML = "html"  # a web page where JSON was due
    BAD_SHAPE = "bad_shape"  # JSON without what the route promises
    BUDGET = "budget"  # not sent: the budget was spent
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be asked of one endpoint, and how long to wait for it (seconds)."""

    max_in_flight: int = 4
    requests_per_second: float | None = None
    connect_timeout: float = 10.0
    first_byte_timeout: float = 120.0
    read_timeout: float = 60.0
    max_attempts: int = 3
    max_retry_wait: float = 60.0
    total_timeout: float = 900.0  # a server that pings for ever never falls silent


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """One address that serves one model under one name.

    ``api_key`` is a reference of the form ``env:NAME``, never the secret.
    ``price_in`` and ``price_out`` are dollars per million tokens.
    ``context_length`` is what the endpoint promises, in tokens.
    """

    name: str
    base_url: str
    model: str
    dialect: str = "openai"
    role: Role = Role.PROVIDER
    context_length: int | None = None
    region: str | None = None
    price_in: float | None = None
    price_out: float | None = None
    api_key: str | None = None
    verify_tls: bool = True
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn. ``None`` leaves the server's default."""

    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = 1
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One question. Exactly one of ``messages``, ``prompt_token_ids``, ``prompt`` is set.

    ``messages`` goes to the chat route, the other two to the completions route.
    ``logprobs`` is k, the number of alternatives asked for at each generated
    position (``None``: none). ``prompt_logprobs`` asks for the same at every
    prompt position where the dialect can. ``session`` names the connection and
    cache key the request travels with.
    """

    id: str
    messages: tuple[Mapping[str, Any], ...] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    prompt: str | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    tool_choice: str | Mapping[str, Any] | None = None
    response_format: Mapping[str, Any] | None = None
    sampling: Sampling = Sampling()
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    echo: bool = False
    return_token_ids: bool = False
    stream: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    session: str | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token with its logprob as the server sent it (nats).

    ``token_id`` is set when the server gave the ID; ``raw`` are the token's
    bytes when the server gave bytes that can be trusted.
    """

    token: str
    logprob: float
    token_id: int | None = None
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """The logprobs of one generated position, in the server's order.

    ``top`` is the list as received, the appended sampled token included.
    """

    sampled: TokenLogprob
    top: tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the server states them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Readings of one monotonic clock (seconds), taken at socket read, before parsing."""

    scheduled: float
    sent: float | None = None
    first_byte: float | None = None
    first_content: float | None = None
    last_content: float | None = None
    end: float | None = None


@dataclass(frozen=True, slots=True)
class WireChunk:
    """Bytes of the body as one socket read delivered them."""

    at: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no usable answer.

    ``message`` is a sentence for a person and never holds a secret.
    ``retry_after`` is the server's own wish, in seconds.
    """

    kind: FailureKind
    message: str
    party: Party = Party.UNKNOWN
    status: int | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a request: when it was sent (seconds), how it ended, how long we then waited."""

    number: int
    sent: float
    failure: Failure | None
    waited: float = 0.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, and everything that came back for it.

    Invariants: an exchange always exists, also when nothing was answered
    (``error`` says why); ``finish_reason`` is what the server sent and ``None``
    when it sent none; ``attempts`` holds every try, the failed ones included.
    """

    id: str
    endpoint: str
    request: Request
    at: datetime
    timings: Timings
    wire: tuple[WireChunk, ...] = ()
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    top_logprobs: tuple[Position, ...] | None = None
    prompt_logprobs: tuple[Position | None, ...] | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Failure | None = None
    attempts: tuple[Attempt, ...] = ()
    requested_model: str | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval; ``level`` is its coverage, for example 0.99.

    A missing bound is unbounded on that side.
    """

    low: float | None
    high: float | None
    level: float


@dataclass(frozen=True, slots=True)
class Observation:
    """One number about one endpoint. ``n`` is the number of prompts or requests behind it."""

    endpoint: str
    probe: str
    metric: str
    value: float
    unit: str
    n: int
    at: datetime
    run: str
    context_length: int | None = None
    stratum: Stratum = Stratum.PROBE
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement about one endpoint.

    ``measured`` is false when the statement is that nothing could be said:
    the check then ends as UNKNOWN. ``evidence`` holds hashes, offsets and,
    from probes only, at most 64 token IDs around a difference. It never holds
    text. ``value`` is the measured quantity; ``effect`` is how far it lies
    beyond what an honest endpoint shows. ``since`` is when the fault began,
    where the judge knows it: a judge of one night does not.
    """

    endpoint: str
    check: Check
    code: str
    severity: Severity
    party: Party
    cause: Cause
    message: str
    alternatives: tuple[Cause, ...] = ()
    effect: float | None = None
    unit: str | None = None
    interval: Interval | None = None
    n: int = 0
    detectable_effect: float | None = None
    onset: int | None = None
    metric: str | None = None
    value: float | None = None
    measured: bool = True
    evidence: Mapping[str, Any] = field(default_factory=dict)
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person reads about one endpoint and one check.

    ``since`` is the time of the first run of the unbroken series of runs with
    this state and cause, or the estimated begin of a change that a series of
    nights showed. ``onset`` is the length, in tokens, of the first
    faulty context bucket.
    """

    endpoint: str
    model: str
    check: Check
    verdict: State
    reason: str
    run: str
    cause: Cause | None = None
    alternatives: tuple[Cause, ...] = ()
    since: datetime | None = None
    metric: str | None = None
    value: float | None = None
    unit: str | None = None
    interval: Interval | None = None
    n: int = 0
    detectable_effect: float | None = None
    onset: int | None = None
