"""Whether two models can be compared at all: position by position, token by token, layer by layer."""

from __future__ import annotations

from typing import Any

from reference_engine.models.loading import LoadedModel
from ringtrue.errors import ModelError

_SHAPE = (
    "model_type",
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
)


def require_comparable(reference: LoadedModel, candidate: LoadedModel) -> None:
    """Check that both have the same architecture, vocabulary size and tokenizer.

    Another checkpoint of the same architecture passes: whether it is the right
    one is what a comparison tells. Tokenizers may differ in IDs that only one
    of them knows, such as the padding that a GGUF file names.

    Raises:
        ModelError: they differ; the message names the first difference and both models.
    """
    where = f"{reference.name} and {candidate.name}"
    _require_architecture(reference, candidate, where)
    if reference.vocabulary_size != candidate.vocabulary_size:
        raise ModelError(
            f"the vocabularies have {reference.vocabulary_size} and {candidate.vocabulary_size} tokens",
            where=where,
            remedy="Take a candidate whose head has as many rows, neither padded nor extended",
        )
    _require_tokenizer(reference, candidate, where)


def _require_architecture(reference: LoadedModel, candidate: LoadedModel, where: str) -> None:
    ours, theirs = (model.network.config.get_text_config() for model in (reference, candidate))
    for name in _SHAPE:
        values = getattr(ours, name, None), getattr(theirs, name, None)
        if None not in values:  # a configuration may leave out what follows from the rest
            _require_equal(name, *values, where)
    shapes = [
        {name: tuple(p.shape) for name, p in model.layers.named_parameters()}
        for model in (reference, candidate)
    ]
    for name in sorted(shapes[0].keys() | shapes[1].keys()):
        _require_equal(f"the shape of layer weight {name}", shapes[0].get(name), shapes[1].get(name), where)


def _require_equal(what: str, ours: Any, theirs: Any, where: str) -> None:
    if ours != theirs:
        raise ModelError(
            f"the architectures differ: {what} is {ours} and {theirs}",
            where=where,
            remedy="Compare checkpoints of one architecture: quantizations, fine-tunes, other versions",
        )


def _require_tokenizer(reference: LoadedModel, candidate: LoadedModel, where: str) -> None:
    ours, theirs = reference.codec.tokens(), candidate.codec.tokens()
    differing = sorted(i for i in ours.keys() & theirs.keys() if ours[i] != theirs[i])
    if differing:
        first = differing[0]
        raise ModelError(
            f"the tokenizers differ in {len(differing)} IDs, "
            f"the first is {first}: {ours[first]!r} and {theirs[first]!r}",
            where=where,
            remedy="Compare models of one tokenizer, or check which tokenizer.json came with the candidate",
        )
