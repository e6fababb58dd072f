"""Models in memory."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from reference_engine.models.caches import new_cache
from reference_engine.models.changes import Noise, Training
from reference_engine.models.codec import TokenCodec
from reference_engine.models.memory import enough_memory, is_out_of_memory
from reference_engine.models.names import ModelName
from reference_engine.models.quiet import quiet_transformers
from reference_engine.models.reading import read_model
from reference_engine.models.rotary import with_rotary_base
from reference_engine.models.sources import Source, find_source
from reference_engine.models.tuning import WINDOW, noised, text_hash, trained, tuning_text
from reference_engine.models.variants import TORCH_DTYPES, cast, decoder_layers, rounded
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    # Imported while a model loads, where its noise is kept off the terminal.
    from transformers import DynamicCache, PreTrainedModel


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """One variant of one model, ready to run. Only the engine thread calls ``network``.

    ``weights_hash`` hashes the weight files and the variant, ``fingerprint``
    also configuration, tokenizer and template (64 hex digits each). Lengths
    are in tokens.
    """

    name: ModelName
    network: PreTrainedModel
    codec: TokenCodec
    weights_hash: str
    fingerprint: str
    context_length: int
    vocabulary_size: int
    eos_ids: frozenset[int]

    @property
    def layers(self) -> nn.ModuleList:
        """The decoder layers, first to last."""
        return decoder_layers(self.network)

    @property
    def tokenizer_hash(self) -> str:
        """The sha256 of the map from token to ID, as 64 hex digits."""
        return self.codec.vocabulary_hash()

    @property
    def template_hash(self) -> str | None:
        """The sha256 of the chat template, as 64 hex digits; ``None`` if the model has none."""
        return self.codec.template_hash()

    @property
    def needs_cache(self) -> bool:
        """Whether every pass must be given a cache, because keys and values are rounded in it."""
        return self.name.rounds_cache

    def new_cache(self, layers: Collection[int] | None = None) -> DynamicCache:
        """Return an empty key-value cache for one sequence or batch of calls.

        It rounds keys and values as the name says, of the decoder layers in
        ``layers`` alone where they are given.
        """
        chosen = range(len(self.layers)) if layers is None else layers
        kinds = {layer: kind for layer in chosen if (kind := self.name.cache(layer)) is not None}
        return new_cache(self.network.config, kinds)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.network.device

    def body(self, ids: Tensor, **options: Any) -> Any:
        """Run all below the head on ``ids`` [batch, tokens]; ``last_hidden_state`` has a row a token."""
        network: Any = self.network
        base = network.base_model
        # Some classes (Llama 4) name a prefix that they do not have, and are their own base.
        return (network.model if base is network else base)(input_ids=ids, **options)

    def head(self, hidden: Tensor) -> Tensor:
        """Return the logits [..., vocabulary] of hidden states [..., hidden], as the whole model does."""
        network: Any = self.network
        logits: Tensor = network.get_output_embeddings()(hidden)
        config = self.network.config.get_text_config()
        if (scale := getattr(config, "logit_scale", None)) is not None:  # Cohere
            logits = logits * scale
        if (scaling := getattr(config, "logits_scaling", None)) is not None:  # Granite
            logits = logits / scaling
        if (cap := getattr(config, "final_logit_softcapping", None)) is not None:  # Gemma
            logits = torch.tanh(logits / cap) * cap
        return logits


def pick_device(device: str) -> torch.device:
    """Return the device that ``device`` names; ``auto`` is CUDA where there is one, else the CPU.

    Raises:
        ModelError: the device does not exist here.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            "the device cannot be used", where=repr(device), remedy="Use auto, cpu, cuda or cuda:N"
        ) from error


def load_base(base: str, device: torch.device) -> LoadedModel:
    """Load a model in float32.

    Raises:
        ModelError: it is not found, cannot be read, has no fast tokenizer, or
            computes its logits in a way that ``LoadedModel.head`` does not know.
        MeasureError: memory ran out.
    """
    source = find_source(base)
    with enough_memory(base):
        network, tokenizer = _read(source, base)
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise ModelError("the model has no fast tokenizer (tokenizer.json)", where=base)
        module: nn.Module = network
        module.eval().requires_grad_(requires_grad=False).to(device)
        loaded = _described(base, source, network, TokenCodec(tokenizer))
        _require_known_head(loaded)
    return loaded


def load_variant(
    exact: LoadedModel, name: ModelName, load: Callable[[ModelName], LoadedModel]
) -> LoadedModel:
    """Build the variant ``name`` of ``exact``, the same base in float32.

    ``load`` gives the models whose weights it shares: one that only rounds its
    cache has the network of the one that does not, one with another rotary
    base shares every weight with the one that has the model's own, and one
    with rounded weights shares every weight it does not round with the
    unrounded model of the same dtype.

    Raises:
        ModelError: it names a layer that is not there, or as
            ``variants.rounded``, ``rotary.with_rotary_base`` and ``tuning.trained``.
        MeasureError: memory ran out.
    """
    count = len(exact.layers)
    missing = sorted(layer for layer in name.layers if layer >= count)
    if missing:
        raise ModelError(
            f"the model has no layer {missing[0]}",
            where=str(name),
            remedy=f"Layers count from 0 to {count - 1}",
        )
    with enough_memory(str(name)):
        network = _variant_network(exact, name, load)
    variants = str(name).removeprefix(name.base)
    if isinstance(name.tuned, Training):
        variants += text_hash()
    return replace(
        exact,
        name=name,
        network=network,
        weights_hash=_hash_text(exact.weights_hash + variants),
        fingerprint=_hash_text(exact.fingerprint + variants),
    )


def _read(source: Source, base: str) -> tuple[PreTrainedModel, Any]:
    try:
        with quiet_transformers(), torch.device("cpu"):
            return read_model(source, base)
    # The readers walk into a damaged file until something does not fit: any of these may say so.
    except (OSError, ValueError, ImportError, LookupError, RuntimeError, struct.error) as error:
        if is_out_of_memory(error):
            raise
        raise ModelError(f"the model cannot be loaded: {error}", where=base) from error


def _variant_network(
    exact: LoadedModel, name: ModelName, load: Callable[[ModelName], LoadedModel]
) -> PreTrainedModel:
    if name.rounds_cache:
        return load(name.without_cache).network
    if name == name.exact and name.dtype == "fp32":
        return _changed_network(exact, name, load)
    changed = load(name.with_dtype("fp32", keep=())).network
    if name == name.exact:
        return cast(changed, TORCH_DTYPES[name.dtype])
    return rounded(changed, load(name.exact).network, name)


def _changed_network(
    exact: LoadedModel, name: ModelName, load: Callable[[ModelName], LoadedModel]
) -> PreTrainedModel:
    """The network in float32, trained first and then turned: the server's base is not the trainer's."""
    if name.rope is not None:
        return with_rotary_base(load(replace(name, rope=None)).network, name.rope.base, str(name))
    if isinstance(name.tuned, Noise):
        return noised(exact.network, name.tuned)
    if name.tuned is None:
        return exact.network
    ids = exact.codec.encode(tuning_text())
    window = min(WINDOW, exact.context_length)
    return trained(exact.network, ids, name.tuned, window=window, where=str(name))


def _described(base: str, source: Source, network: PreTrainedModel, codec: TokenCodec) -> LoadedModel:
    weights_hash = source.weights_hash()
    config = network.config.get_text_config()
    return LoadedModel(
        name=ModelName(base),
        network=network,
        codec=codec,
        weights_hash=weights_hash,
        fingerprint=source.fingerprint(weights_hash),
        context_length=config.max_position_embeddings,
        vocabulary_size=config.vocab_size,
        eos_ids=_eos_ids(network.generation_config, codec),
    )


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _eos_ids(generation_config: Any, codec: TokenCodec) -> frozenset[int]:
    declared = getattr(generation_config, "eos_token_id", None)
    ids = declared if isinstance(declared, list) else [declared]
    return frozenset(token_id for token_id in (*ids, codec.eos_id) if token_id is not None)


def _require_known_head(model: LoadedModel) -> None:
    ids = torch.arange(min(4, model.vocabulary_size), device=model.device).unsqueeze(0)
    with torch.inference_mode():
        ours = model.head(model.body(ids, use_cache=False).last_hidden_state)
        theirs = model.network(input_ids=ids, use_cache=False).logits
    # Broken weights are for whoever runs them to locate: here NaN equals NaN.
    if not torch.equal(ours.nan_to_num(), theirs.nan_to_num()):
        raise ModelError(
            "the architecture transforms its logits in a way the reference engine does not know",
            where=type(model.network).__name__,
        )
