"""Recorded series as a probe would write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

START = datetime(2026, 1, 1, 3, tzinfo=UTC)
Record = dict[str, object]


def times(night: int, count: int = 10) -> Iterator[str]:
    for request in range(count):
        yield (START + timedelta(days=night, seconds=request)).isoformat()


def logprobs(
    endpoint: str = "a",
    nights: Iterable[int] = range(40),
    *,
    change: int = 10_000,
    shift: float = 0.5,
    k: int = 20,
    noise: float = 0.05,
    seed: int = 3,
    count: int = 10,
) -> Iterator[Record]:
    """Rows of one prompt whose nights differ a little; ``change`` is the night of a shift (in nats)."""
    generator = np.random.default_rng(seed)
    usual = -np.sort(generator.exponential(2.0, 30)) - 1.0
    direction = generator.normal(size=30)
    for night in nights:
        moved = usual + (shift * direction if night >= change else 0) + noise / 4 * generator.normal(size=30)
        for t in times(night, count):
            row = moved + noise * generator.normal(size=30)
            row -= max(0.0, float(np.log(np.exp(row).sum())))
            best = np.argsort(-row)[:k]
            top = [[f"t{token}", round(float(row[token]), 4)] for token in best]
            yield {"endpoint": endpoint, "t": t, "prompt": "x", "top_logprobs": top}


def values(
    endpoint: str = "a",
    nights: Iterable[int] = range(40),
    *,
    change: int = 10_000,
    shift: float = 0.0,
    metric: str = "seconds",
    spread: float = 0.2,
    seed: int = 5,
) -> Iterator[Record]:
    generator = np.random.default_rng(seed)
    for night in nights:
        for t in times(night):
            value = 1.0 + (shift if night >= change else 0.0) + spread * generator.normal()
            yield {"endpoint": endpoint, "t": t, "metric": metric, "value": float(value)}


def texts(
    endpoint: str = "a",
    nights: Iterable[int] = range(40),
    *,
    change: int = 10_000,
    words: str = "abcd",
    longer: float = 1.0,
    ending: str = "",
    seed: int = 7,
) -> Iterator[Record]:
    """Answers to two prompts, of words drawn at random; from ``change`` on of other words or lengths."""
    generator = np.random.default_rng(seed)
    for night in nights:
        changed = night >= change
        for at, t in enumerate(times(night)):
            size = int(generator.lognormal(3.5, 0.3) * (longer if changed else 1.0))
            text = " ".join(generator.choice(list(words if changed else "abcd"), size=size))
            prompt = f"prompt {at % 2}"
            yield {"endpoint": endpoint, "t": t, "prompt": prompt, "text": text + (ending if changed else "")}


def write(path: Path, *series: Iterable[Record]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for one in series for record in one))
    return path
