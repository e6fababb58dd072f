"""One template through all figures, as plain data that a process can hand over."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from template_figures.counted import Counted, counted
from template_figures.days import alarms
from template_figures.held_out import Judged, held_out_pairs, judged
from template_figures.mutated import Told, told
from template_figures.real_models import RealModel, RememberingRenderer, prompts_of

from tokenizer_checks.templates.fixtures import fixtures

NOW = datetime(2026, 3, 9, 15, 30)  # noqa: DTZ001 - what the reference's clock shows


@dataclass(frozen=True, slots=True)
class Examined:
    """All that was measured of one template; ``held_out`` are its pairs by name."""

    model: RealModel
    told: tuple[Told, ...]
    held_out: dict[str, tuple[Judged, ...]]
    counted: tuple[Counted, ...]
    undetectable: dict[str, list[str]]
    asked: int
    alarms: list[str] = field(default_factory=list)


def examine(model: RealModel) -> Examined:
    """Measure one template, without I/O but for its files."""
    prompts, chats = prompts_of(model), fixtures()
    pairs = [pair for pair in held_out_pairs() if pair.template == model.name]
    markers = (model.eos, *model.markers[:2])
    rows, hidden = counted(prompts, RememberingRenderer(), markers, NOW)
    asked, raised = alarms(prompts, chats)
    return Examined(
        model=model,
        told=tuple(told(prompts, chats, NOW)),
        held_out={pair.name: tuple(judged(pair, prompts, chats, NOW)) for pair in pairs},
        counted=tuple(rows),
        undetectable=hidden,
        asked=asked,
        alarms=raised,
    )


def pairing(models: list[RealModel]) -> dict[str, Any]:
    """Return which vocabulary each template was read with, and how many have their family's."""
    return {
        "own": sum(model.own for model in models),
        "stand_ins": dict(Counter(model.vocabulary for model in models if not model.own)),
        "models": {model.name: {k: v for k, v in asdict(model).items() if k != "name"} for model in models},
    }
