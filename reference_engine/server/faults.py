"""The faults a replica can be told to have, for the demo, for drills, and to measure what is detected."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ringtrue.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with a replica besides its weights. The default is nothing.

    ``truncate_context`` keeps the last so many tokens of a prompt, silently;
    ``corrupt_beyond`` corrupts hidden states from that position on;
    ``latency_s`` delays every answer (seconds). ``share`` is the part of
    sessions that meet the faults, the replica's weights included.
    """

    drop_generation_prompt: bool = False
    double_bos: bool = False
    drop_default_system: bool = False
    truncate_context: int | None = None
    corrupt_beyond: int | None = None
    latency_s: float = 0.0
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
        for name in ("truncate_context", "corrupt_beyond"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError("must be a number of tokens, 1 or more", where=name)

    def meets(self, session: str, seed: int) -> bool:
        """Whether a session meets the faults: always the same answer for one session and seed."""
        digest = hashlib.sha256(f"{seed}:{session}".encode()).digest()
        return int.from_bytes(digest[:8]) < self.share * 2**64
