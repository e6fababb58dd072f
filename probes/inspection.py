"""One inspection of an endpoint: what it can do, and whether its logprobs can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from probes.capabilities import Capabilities, discover, list_models
from probes.http_endpoint import connect
from probes.self_test import SelfTest, self_test
from ringtrue.exit_codes import ExitCode
from ringtrue.records import EndpointSpec, FailureKind

_USUAL_K = 20
_NO_SUCH_ROUTE = frozenset({FailureKind.NOT_FOUND, FailureKind.REFUSED})  # the others concern every route


@dataclass(frozen=True, slots=True)
class Inspection:
    """All that ``ringtrue inspect`` found."""

    endpoint: str
    capabilities: Capabilities
    self_test: SelfTest

    @property
    def exit_code(self) -> ExitCode:
        """FINE with logprobs to be trusted, DRIFT with others, UNMEASURED without any."""
        if self.self_test.trusted is None:
            return ExitCode.UNMEASURED
        return ExitCode.FINE if self.self_test.trusted else ExitCode.DRIFT

    @property
    def summary(self) -> str:
        """One sentence a person can act on."""
        reasons = "; ".join(self.self_test.reasons)
        match self.self_test.trusted:
            case True:
                return f"Its logprobs can be compared ({self.self_test.scaling or 'scaling unclear'})."
            case False:
                return f"Its logprobs cannot be trusted: {reasons}."
        return f"UNKNOWN, no logprobs could be measured: {reasons}."


async def inspect_endpoint(spec: EndpointSpec, env: Mapping[str, str], *, detect_dialect: bool) -> Inspection:
    """Inspect one endpoint. An empty ``spec.model`` stands for the first model it serves.

    An endpoint that cannot be talked to at all gives an inspection that says why.

    Raises:
        ConfigError: the specification is wrong; see ``connect``.
    """
    async with aclosing(connect(spec, env)) as endpoint:
        listing = await list_models(endpoint)
    model = spec.model or next(iter(listing.models), "")
    error = listing.error
    if not model or (error is not None and error.kind not in _NO_SUCH_ROUTE):
        reason = error.message if error else "the server lists no model: name one with --model"
        empty = Capabilities(model, spec.dialect, listing.models, listing.context_length, None, (), 1)
        return Inspection(spec.name, empty, SelfTest(None, (reason,), None, (), 0))
    spec = replace(spec, model=model, dialect=listing.dialect if detect_dialect else spec.dialect)
    async with aclosing(connect(spec, env)) as endpoint:
        found = await discover(endpoint)
        tested = await self_test(endpoint, k=min(_USUAL_K, found.largest_k or _USUAL_K))
    return Inspection(spec.name, found, tested)
