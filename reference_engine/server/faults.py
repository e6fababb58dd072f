"""The faults a replica can be told to have, for the demo, for drills, and to measure what is detected."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from reference_engine.server.tool_calls.knobs import Knobs
from ringtrue.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with a replica besides its weights. The default is nothing.

    ``truncate_context`` keeps the last so many tokens of a prompt, silently;
    ``corrupt_beyond`` corrupts hidden states from that position on;
    ``latency_s`` delays every answer (seconds).

    Faults of sampling change what is drawn and no logprob that is reported:
    ``temperature_factor`` multiplies the temperature that was asked for,
    ``ignore_temperature`` always takes the likeliest token, ``top_k`` draws
    from the k likeliest only, ``drop_top_token`` never draws the likeliest one
    at a temperature above 0, ``ignore_seed`` draws a fresh seed for every
    answer, ``end_bias`` (nats) is added to the logits of the tokens that end an
    answer: below 0 answers become longer and meet their cap more often.

    ``tool_faults`` are codes of tool calls and output shape: ``CODE`` spoils
    what is delivered, ``raw:CODE`` what the model writes (``tool_calls.knobs``).

    ``share`` is the part of sessions that meet the faults, the replica's
    weights included.
    """

    drop_generation_prompt: bool = False
    double_bos: bool = False
    drop_default_system: bool = False
    truncate_context: int | None = None
    corrupt_beyond: int | None = None
    latency_s: float = 0.0
    temperature_factor: float = 1.0
    ignore_temperature: bool = False
    top_k: int | None = None
    drop_top_token: bool = False
    ignore_seed: bool = False
    end_bias: float = 0.0
    tool_faults: tuple[str, ...] = ()
    share: float = 1.0

    def __post_init__(self) -> None:
        """Refuse values that mean nothing.

        Raises:
            ConfigError: names the field.
        """
        if not 0 <= self.share <= 1:
            raise ConfigError("must be between 0 and 1", where="share")
        if self.latency_s < 0:
            raise ConfigError("must be a time in seconds, 0 or more", where="latency_s")
        for name in ("truncate_context", "corrupt_beyond", "top_k"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError("must be a number of tokens, 1 or more", where=name)
        if not (math.isfinite(self.temperature_factor) and self.temperature_factor > 0):
            raise ConfigError(
                "must be a positive number", where="temperature_factor", remedy="Use ignore_temperature for 0"
            )
        if not math.isfinite(self.end_bias):
            raise ConfigError("must be a number of nats", where="end_bias")
        Knobs(self.tool_faults)  # refuses unknown codes

    @property
    def knobs(self) -> Knobs:
        """The faults of tool calls, by where they act."""
        return Knobs(self.tool_faults)

    def temperature(self, asked: float) -> float:
        """Return the temperature that is drawn at when ``asked`` was asked for."""
        return 0.0 if self.ignore_temperature else asked * self.temperature_factor

    def meets(self, session: str, seed: int) -> bool:
        """Whether a session meets the faults: always the same answer for one session and seed."""
        digest = hashlib.sha256(f"{seed}:{session}".encode()).digest()
        return int.from_bytes(digest[:8]) < self.share * 2**64
