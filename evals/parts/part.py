"""What a part of an examination is, and what it is told before it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evals.parts.asker import Asker
from probes.self_test import Scaling
from ringtrue.records import Check, EndpointSpec, Finding, Request, State


@dataclass(frozen=True, slots=True)
class Known:
    """What the context curve has shown of an endpoint.

    ``k`` is the number of logprobs a position that it gives, ``None`` for
    none; ``trusted`` says whether they may be believed, ``scaling`` what a
    temperature does to them. ``logprobs`` is what the rule of one night says
    of them: OK within the floor, UNKNOWN where nothing could be compared.
    """

    k: int | None
    trusted: bool
    scaling: Scaling | None
    logprobs: State


class Part(Protocol):
    """One part, made once a cycle and shared by all of its endpoints.

    What it needs of the reference it computes when first asked for, and once.
    """

    @property
    def name(self) -> str:
        """The probe's name, under which its observations are kept."""

    @property
    def check(self) -> Check:
        """The check it answers."""

    @property
    def basis(self) -> str:
        """What its numbers depend on: nights with another basis can't be compared."""

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return every request that an examination of this endpoint may send, with its prompt's tokens.

        Retries are not among them. The tokens are counted on the expected IDs.
        """

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        """Ask one endpoint and judge the answers.

        Nothing that an endpoint does raises: what could not be measured is a
        finding that says so. It may have nothing to say, and then returns none.
        """

    async def aclose(self) -> None:
        """Stop what is still being computed."""
