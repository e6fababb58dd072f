"""How an endpoint is asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExaminePlan:
    """The settings of one examination.

    ``k`` logprobs a prompt, over ``sessions`` connections, in an order drawn
    from ``seed``. With ``self_test`` the endpoint's logprobs are tested before
    they are trusted. ``give_up_after`` failures in a row end the asking.
    """

    k: int = 20
    sessions: int = 8
    seed: int = 0
    stream: bool = False
    self_test: bool = True
    give_up_after: int = 8
