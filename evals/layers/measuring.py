"""One measurement by layer from start to end."""

from __future__ import annotations

from functools import partial

from evals.compare.measuring import ComparePlan, choose_sequences
from reference_engine.divergence.states import ExactStates
from reference_engine.engine import Engine, require_usable
from reference_engine.layers.measure import LayerMeasurement
from reference_engine.layers.result import LayerDivergence
from reference_engine.models.comparable import require_comparable
from ringtrue.progress import ProgressReport
from ringtrue.report import counted

_PART = "layers"


def run_layers(plan: ComparePlan, progress: ProgressReport, *, modules_in: int) -> LayerDivergence:
    """Load both models and measure where the candidate's loss comes from.

    Raises:
        ModelError: a model cannot be loaded, or the two cannot be compared.
        UsageError: the corpus cannot be used with them.
        MeasureError: a value is NaN or infinite, memory ran out, or the
            architecture cannot be cut at its layers.
    """
    with Engine(device=plan.device) as engine:
        progress.say(f"Loading {plan.reference} and {plan.candidate}")
        reference, candidate = engine.load(plan.reference), engine.load(plan.candidate)
        require_comparable(reference, candidate)
        sequences = choose_sequences(plan, ExactStates(reference))
        for ids in sequences:
            require_usable(reference, ids)
        measurement = LayerMeasurement(reference, candidate, sequences, modules_in=modules_in)
        tokens = sum(map(len, sequences))
        size = f"{counted(len(sequences), 'sequence')}, {counted(tokens, 'token')}"
        progress.say(f"{size}, {len(reference.layers)} layers")
        progress.begin(_PART, measurement.cost)
        return engine.call(partial(measurement.run, partial(progress.advance, _PART))).result()
