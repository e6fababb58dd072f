"""``ringtrue baseline build`` with a server for a source: the fast path, believed once it is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evals.baseline.building import BuildOrder, announcement, opened_order, run_interruptibly
from evals.served.opening import Opened, open_served
from evals.served.trust import SAMPLE, TrustPlan, require_trust
from evals.served.vllm_child import SERVED_MODEL, Child, ChildPlan, servable_folder, vllm_child, wait_ready
from probes.clock import system_clock
from probes.http_endpoint import connect
from reference_engine.baselines.building import Build, build_baseline
from reference_engine.baselines.corpus import Corpus
from reference_engine.baselines.exact import exact_request
from reference_engine.baselines.manifest import BaselineRequest
from reference_engine.baselines.store import StoredBaseline
from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from ringtrue.errors import UsageError
from ringtrue.progress import ProgressReport
from ringtrue.records import EndpointSpec, Limits

_DTYPE = "bf16"  # of the noise floor, and of a vLLM that is started here
_NAME = "server"
_LEAST_CONTEXT = 512  # tokens; the chats of the checks want some room
_LEAST_LOGPROBS = 20
# All logprobs of a long prompt come in one piece, and late.
_LIMITS = Limits(first_byte_timeout=900.0, read_timeout=300.0, total_timeout=3600.0)


@dataclass(frozen=True, slots=True)
class ServerOrder:
    """Which server to ask: one at ``url``, or vLLM started by the interpreter ``vllm_python``.

    ``model`` is the name it serves under, ``None`` for the first it lists;
    ``api_key`` an ``env:NAME`` reference; ``sample`` the number of sequences
    that are recomputed exactly, `SAMPLE` unless given.
    """

    url: str | None = None
    vllm_python: Path | None = None
    model: str | None = None
    api_key: str | None = None
    sample: int | None = None


def build_served(
    order: BuildOrder, server: ServerOrder, env: Mapping[str, str], progress: ProgressReport
) -> tuple[StoredBaseline, bool]:
    """Return the baseline of a server, and whether it had to be built.

    The server is examined first, every time but when the baseline is there
    already; what was found goes into the manifest.

    Raises:
        UsageError, ModelError, ConfigError: the order cannot be carried out; the message says why.
        MeasureError: the server is not to be trusted, or failed.
        StoreError: as ``build_baseline``.
    """
    if (server.url is None) == (server.vllm_python is None):
        raise UsageError("either --url or --vllm-python names the server, and only one of them")
    if order.states:
        raise UsageError("a server does not give hidden states", remedy="Leave out --states")
    with opened_order(order, progress) as (engine, model, corpus, k):
        if model.name.dtype != "fp32":
            raise UsageError(
                f"a server is held against the model in fp32, not in {model.name.dtype}",
                where=str(model.name),
                remedy="Leave the dtype out of the model's name",
            )
        job = _Job(order, server, env, engine, model, corpus, k, progress)
        with _server(job) as child:
            return run_interruptibly(_build(job, child))


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    order: BuildOrder
    server: ServerOrder
    env: Mapping[str, str]
    engine: Engine
    model: LoadedModel
    corpus: Corpus
    k: int
    progress: ProgressReport


@contextmanager
def _server(job: _Job) -> Iterator[Child | None]:
    """Start vLLM where one is wanted."""
    python = job.server.vllm_python
    if python is None:
        yield None
        return
    longest = max(len(sequence) for sequence in job.corpus)
    plan = ChildPlan(
        python=python,
        folder=servable_folder(job.model.name),
        dtype=_DTYPE,
        # vLLM counts the token that it generates.
        context_length=min(job.model.context_length, max(longest + 1, _LEAST_CONTEXT)),
        max_logprobs=max(job.k, _LEAST_LOGPROBS),
    )
    with vllm_child(plan) as child:
        job.progress.say(f"starting vLLM at {child.url}, log in {child.log}")
        yield child


async def _build(job: _Job, child: Child | None) -> tuple[StoredBaseline, bool]:
    spec = _spec(job.server, child)
    if child is not None:
        async with aclosing(connect(spec, job.env)) as endpoint:
            await wait_ready(child, endpoint, system_clock())
    sequences = [sequence.token_ids.tolist() for sequence in job.corpus]
    async with open_served(
        spec,
        job.env,
        sequences,
        k=job.k,
        context_length=job.model.context_length,
        vocabulary_size=job.model.vocabulary_size,
        rng=np.random.default_rng(),
    ) as opened:
        request = _request(job, opened, _DTYPE if child is not None else None)
        if (found := job.order.store.find(request)) is not None:
            return found, False
        plan = TrustPlan(job.k, SAMPLE if job.server.sample is None else job.server.sample, _DTYPE)
        evidence = await require_trust(
            opened.source, job.engine, job.model, sequences, plan, say=job.progress.say
        )
        build = Build(job.corpus, request, in_flight=_LIMITS.max_in_flight, evidence=evidence)
        job.progress.say(announcement(build))
        return await build_baseline(build, opened.source, job.order.store, job.progress)


def _spec(server: ServerOrder, child: Child | None) -> EndpointSpec:
    return EndpointSpec(
        _NAME,
        child.url if child is not None else server.url or "",
        SERVED_MODEL if child is not None else server.model or "",
        dialect="vllm",
        api_key=server.api_key,
        limits=_LIMITS,
    )


def _request(job: _Job, opened: Opened, dtype: str | None) -> BaselineRequest:
    exact = exact_request(job.model, job.corpus, k=job.k, states=False)
    served = replace(exact.model, dtype=dtype or "unknown")
    return replace(exact, model=served, source=opened.facts(dtype))
