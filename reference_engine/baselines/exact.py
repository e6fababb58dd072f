"""The reference engine as a source of scores, and what a baseline says of its model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

from reference_engine.baselines.corpus import Corpus
from reference_engine.baselines.environment import environment_of
from reference_engine.baselines.manifest import BaselineRequest, CorpusFacts, ModelFacts, StateDtype
from reference_engine.baselines.plan import Layout
from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from reference_engine.position_scores import PositionScores

_STATE_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class ExactScores:
    """A model of ours as a ``ScoreSource``."""

    def __init__(self, engine: Engine, model: LoadedModel) -> None:
        self._engine = engine
        self._model = model

    @property
    def context_length(self) -> int:
        """The longest sequence the model takes, in tokens."""
        return self._model.context_length

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens a distribution is over."""
        return self._model.vocabulary_size

    def score(
        self, ids: Sequence[int], *, k: int, states: bool, rows_per_block: int
    ) -> AsyncGenerator[PositionScores, None]:
        """Yield the exact scores of one sequence, block by block: see ``ScoreSource.score``.

        Raises:
            UsageError, MeasureError: as ``Engine.position_scores``.
        """
        return self._engine.position_scores(
            self._model, ids, k=k, states=states, rows_per_block=rows_per_block
        )


def exact_request(
    model: LoadedModel, corpus: Corpus, *, k: int, states: bool, layout: Layout | None = None
) -> BaselineRequest:
    """Return the request for a baseline that ``model`` computes here.

    States are stored in the dtype the model computes in, which loses nothing.
    """
    return BaselineRequest(
        model=model_facts(model),
        corpus=corpus_facts(corpus),
        k=k,
        states=cast("StateDtype", _STATE_DTYPES[model.name.dtype]) if states else None,
        environment=environment_of(model.device),
        layout=layout or Layout(),
    )


def model_facts(model: LoadedModel) -> ModelFacts:
    """Return what a manifest says of a model."""
    network: Any = model.network  # get_output_embeddings has no types
    return ModelFacts(
        name=str(model.name),
        fingerprint=model.fingerprint,
        weights=model.weights_hash,
        tokenizer=model.tokenizer_hash,
        template=model.template_hash,
        dtype=model.name.dtype,
        vocabulary_size=model.vocabulary_size,
        hidden_size=network.get_output_embeddings().weight.shape[1],
        context_length=model.context_length,
    )


def corpus_facts(corpus: Corpus) -> CorpusFacts:
    """Return what a manifest says of a corpus."""
    return CorpusFacts(corpus.digest(), len(corpus), corpus.tokens)
