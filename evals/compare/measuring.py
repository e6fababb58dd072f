"""One comparison from start to end: models, sequences, divergence, floor, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evals.compare.texts import embedded_sequences
from logprob_drift.full_vocabulary.context_loss import ContextLoss, context_loss
from logprob_drift.full_vocabulary.kld_statistics import KldStatistics, kld_statistics
from logprob_drift.full_vocabulary.positions import PositionDivergences
from reference_engine.baselines.corpus_files import read_corpus, usable_length
from reference_engine.baselines.reading import open_baseline
from reference_engine.baselines.store import DEFAULT_STORE, BaselineStore
from reference_engine.divergence.comparison import compare_models
from reference_engine.divergence.noise import NoiseFloor, measure_floor
from reference_engine.divergence.states import ExactStates, ReferenceStates
from reference_engine.divergence.stored import StoredStates
from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from ringtrue.errors import UsageError
from ringtrue.progress import ProgressReport

EMBEDDED_COUNT = 32


@dataclass(frozen=True, slots=True)
class ComparePlan:
    """What to compare and on what.

    Without ``corpus`` the sequences are slices of the embedded texts. With
    ``baseline``, the id of one in the folder ``store``, they are the
    baseline's, and the reference's states are read from it. ``count``
    limits how many sequences are used, from the first on; ``None`` is all of
    a corpus, or 32 slices. Text is cut into slices of ``length`` tokens, by
    default 512. ``skip`` leaves out so many positions at the start of each
    sequence. ``floor`` is the dtype of the noise floor, ``None`` for no floor.
    """

    reference: str
    candidate: str
    corpus: tuple[Path, ...] = ()
    baseline: str | None = None
    store: Path = DEFAULT_STORE
    length: int | None = None
    count: int | None = None
    skip: int = 0
    floor: str | None = "bf16"
    draws: int = 1
    device: str = "auto"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was measured.

    Names are complete, with variants; fingerprints are 64 hex digits.
    ``floor`` is the floor's dtype, ``floor_draws`` its mean KL (nats) in each
    draw of the batching: their spread is what batching alone does.
    """

    reference: str
    candidate: str
    reference_fingerprint: str
    candidate_fingerprint: str
    corpus: str
    skip: int
    seed: int
    statistics: KldStatistics
    context: ContextLoss
    floor: str | None
    floor_draws: tuple[float, ...]


def run_comparison(plan: ComparePlan, progress: ProgressReport) -> Comparison:
    """Load both models, run them over the sequences, and return the statistics.

    Raises:
        ModelError: a model cannot be loaded, or the two cannot be compared.
        UsageError: the corpus cannot be used with them.
        MeasureError: a value is NaN or infinite, or memory ran out.
    """
    with Engine(device=plan.device) as engine:
        progress.say(f"Loading {plan.reference} and {plan.candidate}")
        reference, candidate = engine.load(plan.reference), engine.load(plan.candidate)
        states = _reference_states(plan, reference)
        sequences = choose_sequences(plan, states)
        tokens = sum(map(len, sequences))
        progress.say(f"{len(sequences)} sequences, {tokens:,} tokens")
        progress.begin("comparing", tokens)
        rows = compare_models(
            engine, states, candidate, sequences, advance=lambda n: progress.advance("comparing", n)
        )
        floor = _floor(engine, plan, states, sequences, progress)
    progress.say("Resampling sequences")
    return _concluded(plan, reference, candidate, PositionDivergences.from_sequences(rows), floor)


def _reference_states(plan: ComparePlan, model: LoadedModel) -> ExactStates | StoredStates:
    if plan.baseline is None:
        return ExactStates(model)
    if plan.corpus:
        raise UsageError("a baseline has its own corpus", remedy="Give --baseline or --corpus, not both")
    return StoredStates(open_baseline(plan.baseline, BaselineStore(plan.store)), model)


def choose_sequences(plan: ComparePlan, states: ExactStates | StoredStates) -> list[tuple[int, ...]]:
    """Return the token IDs of the sequences to compare on, as the reference tokenizes them.

    Raises:
        UsageError: the corpus cannot be used, or ``skip`` leaves nothing of it.
    """
    model = states.model
    if isinstance(states, StoredStates):
        found = states.sequences[: plan.count]
    elif plan.corpus:
        corpus = read_corpus(plan.corpus, model, length=plan.length)
        found = [tuple(sequence.token_ids.tolist()) for sequence in corpus][: plan.count]
    else:
        length = usable_length(plan.length, model.context_length)
        count = EMBEDDED_COUNT if plan.count is None else plan.count
        found = embedded_sequences(model.codec.encode, length=length, count=count, seed=plan.seed)
    longest = max(map(len, found))
    if longest <= plan.skip + 1:
        raise UsageError(
            f"skipping {plan.skip:,} positions leaves nothing of sequences of at most {longest:,} tokens",
            remedy="Lower --skip, or give longer sequences",
        )
    return found


def _floor(
    engine: Engine,
    plan: ComparePlan,
    states: ReferenceStates,
    sequences: Sequence[tuple[int, ...]],
    progress: ProgressReport,
) -> NoiseFloor | None:
    if plan.floor is None:
        return None
    name = f"noise floor in {plan.floor}"
    progress.begin(name, plan.draws * sum(map(len, sequences)))
    return measure_floor(
        engine,
        states,
        sequences,
        dtype=plan.floor,
        seed=plan.seed,
        draws=plan.draws,
        advance=lambda tokens: progress.advance(name, tokens),
    )


def _concluded(
    plan: ComparePlan,
    reference: LoadedModel,
    candidate: LoadedModel,
    positions: PositionDivergences,
    floor: NoiseFloor | None,
) -> Comparison:
    scored = positions.skip(plan.skip)
    draws = None if floor is None else floor.kl[:, positions.context > plan.skip]
    honest = None if draws is None else draws.mean(axis=0)
    return Comparison(
        reference=str(reference.name),
        candidate=str(candidate.name),
        reference_fingerprint=reference.fingerprint,
        candidate_fingerprint=candidate.fingerprint,
        corpus=_corpus_name(plan),
        skip=plan.skip,
        seed=plan.seed,
        # A generator each, so that neither depends on what the other drew.
        statistics=kld_statistics(scored, np.random.default_rng(plan.seed), floor=honest),
        context=context_loss(scored, np.random.default_rng(plan.seed), floor=honest),
        floor=plan.floor,
        floor_draws=() if draws is None else tuple(draws.mean(axis=1).tolist()),
    )


def _corpus_name(plan: ComparePlan) -> str:
    if plan.baseline is not None:
        return f"baseline {plan.baseline}"
    return ", ".join(map(str, plan.corpus)) or "embedded texts"
