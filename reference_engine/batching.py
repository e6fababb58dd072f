"""Which waiting requests run together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar


class Sized(Protocol):
    """What batching needs to know of a request."""

    @property
    def group(self) -> object:
        """Only requests of one group run together."""

    @property
    def length(self) -> int:
        """Its prompt, in tokens."""

    def rides_on(self, other: Self) -> bool:
        """Whether the other's forward pass computes this request's row as well."""


SizedT = TypeVar("SizedT", bound=Sized)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How large a batch may grow: padded tokens in all, and the share of them that may be padding."""

    padded_tokens: int = 1_024
    waste: float = 0.1

    def fits(self, lengths: Sequence[int]) -> bool:
        """Whether prompts of these lengths may share a batch; a single one always may."""
        padded = max(lengths) * len(lengths)
        return len(lengths) == 1 or (
            padded <= self.padded_tokens and padded - sum(lengths) <= self.waste * padded
        )


def choose_batch(waiting: Sequence[SizedT], limits: BatchLimits) -> list[SizedT]:
    """Return the oldest request and those of its group that fit beside it, nearest in length first.

    The oldest is always among them, so none waits for ever. Requests that
    ride on one of the batch come along, since they cost nothing.
    """
    group = [request for request in waiting if request.group == waiting[0].group]
    boarded = board(group)
    first = boarded[0]
    hosts = [first]
    others = sorted(set(boarded) - {first}, key=lambda index: abs(group[index].length - group[first].length))
    for index in others:
        if limits.fits([*(group[host].length for host in hosts), group[index].length]):
            hosts.append(index)
    riders = [index for index, host in enumerate(boarded) if host in hosts and index != host]
    return [group[index] for index in (*hosts, *riders)]


def board(group: Sequence[Sized]) -> list[int]:
    """Return for each request the index of its host: the first of the longest it rides on, or itself.

    Replicas that share weights are asked the same prompts, or one of them a
    prompt that stops earlier; since attention is causal, one pass serves all.
    """
    boarded = list(range(len(group)))
    hosts: list[int] = []
    for index in sorted(boarded, key=lambda index: -group[index].length):
        boarded[index] = next((host for host in hosts if group[index].rides_on(group[host])), index)
        if boarded[index] == index:
            hosts.append(index)
    return boarded
