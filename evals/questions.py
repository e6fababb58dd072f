"""All that an examination may ask of any endpoint of a cycle."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from evals.identity import Registered
from evals.parts.part import Part
from evals.plan import ExaminePlan
from evals.truth import Truth
from probes.context_curve import to_request
from probes.dialects import dialect_named
from ringtrue.records import EndpointSpec, Request


@dataclass(frozen=True, slots=True)
class Questions:
    """The context curve's prompts (``truth``), asked by ``plan``, and the parts that come after it.

    ``registered`` are the models that an endpoint may serve instead; they are
    asked, not the endpoint.
    """

    truth: Truth
    plan: ExaminePlan
    parts: Sequence[Part] = ()
    registered: Registered = field(default_factory=Registered)

    def of(self, spec: EndpointSpec) -> list[tuple[Request, int]]:
        """Return every request without retries, with its prompt's tokens; the self-test is not among them."""
        dialect = dialect_named(spec.dialect)
        curve = [
            (
                to_request(prompt, k=self.plan.k, dialect=dialect, stream=self.plan.stream),
                len(self.truth.expected[prompt.id]),
            )
            for prompt in self.truth.prompts
        ]
        return [*curve, *(asked for part in self.parts for asked in part.planned(spec))]

    def steps(self, spec: EndpointSpec) -> int:
        """Return how many steps of progress the examination of an endpoint has."""
        return len(self.truth.prompts) + sum(len(part.planned(spec)) for part in self.parts)

    @property
    def basis(self) -> str:
        """What the numbers depend on: nights with another basis can't be compared.

        64 hex digits over weights, dtype, k, prompts and seed of the curve and of each part.
        """
        parts = sorted((part.name, part.basis) for part in self.parts)
        if not parts:
            return self.truth.basis
        return hashlib.sha256(repr((self.truth.basis, parts)).encode()).hexdigest()
