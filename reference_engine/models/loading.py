"""Models in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    modeling_gguf_pytorch_utils,
)
from transformers.utils import logging as transformers_logging

from reference_engine.models.codec import TokenCodec
from reference_engine.models.gguf_once import read_once
from reference_engine.models.names import ModelName
from reference_engine.models.pre_tokenizers import apply_pre_tokenizer, named_pre_tokenizer
from reference_engine.models.sources import Source, find_source
from reference_engine.models.variants import TORCH_DTYPES, cast, decoder_layers, rounded
from ringtrue.errors import ModelError


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """One variant of one model, ready to run. Only the engine thread calls ``network``.

    ``fingerprint`` hashes weights, tokenizer, template and variant (64 hex
    digits). Lengths are in tokens.
    """

    name: ModelName
    network: PreTrainedModel
    codec: TokenCodec
    fingerprint: str
    context_length: int
    vocabulary_size: int
    eos_ids: frozenset[int]

    @property
    def layers(self) -> nn.ModuleList:
        """The decoder layers, first to last."""
        return decoder_layers(self.network)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.network.device

    def body(self, ids: Tensor, **options: Any) -> Any:
        """Run all below the head on ``ids`` [batch, tokens]; ``last_hidden_state`` has a row a token."""
        return self.network.base_model(input_ids=ids, **options)

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
    """
    source = find_source(base)
    try:
        with _quiet(), torch.device("cpu"):
            network, tokenizer = _from_files(source)
    except (OSError, ValueError, ImportError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"the model cannot be loaded: {error}", where=base) from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError("the model has no fast tokenizer (tokenizer.json)", where=base)
    module: nn.Module = network
    module.eval().requires_grad_(requires_grad=False).to(device)
    codec = TokenCodec(tokenizer)
    config = network.config.get_text_config()
    loaded = LoadedModel(
        name=ModelName(base),
        network=network,
        codec=codec,
        fingerprint=source.fingerprint(),
        context_length=config.max_position_embeddings,
        vocabulary_size=config.vocab_size,
        eos_ids=_eos_ids(network.generation_config, codec),
    )
    _require_known_head(loaded)
    return loaded


def load_variant(
    exact: LoadedModel, name: ModelName, load: Callable[[ModelName], LoadedModel]
) -> LoadedModel:
    """Build the variant ``name`` of ``exact``, the same base in float32.

    ``load`` gives the unrounded model of the same dtype, with which a rounded
    one shares every weight it does not round.

    Raises:
        ModelError: as ``variants.rounded``.
    """
    if name == name.exact:
        network = cast(exact.network, TORCH_DTYPES[name.dtype])
    else:
        network = rounded(exact.network, load(name.exact).network, name)
    variants = str(name).removeprefix(name.base)
    fingerprint = hashlib.sha256((exact.fingerprint + variants).encode()).hexdigest()
    return replace(exact, name=name, network=network, fingerprint=fingerprint)


def _from_files(source: Source) -> tuple[PreTrainedModel, Any]:
    if source.gguf_file is None:
        return _pretrained(source.folder)
    with read_once() as reader:
        network, tokenizer = _pretrained(source.folder, gguf_file=source.gguf_file)
        name = named_pre_tokenizer(reader(str(source.folder / source.gguf_file)))
    apply_pre_tokenizer(tokenizer.backend_tokenizer, name)
    return network, tokenizer


def _pretrained(folder: Path, **options: Any) -> tuple[PreTrainedModel, Any]:
    network = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, local_files_only=True, **options
    )
    return network, AutoTokenizer.from_pretrained(folder, local_files_only=True, **options)


def _eos_ids(generation_config: Any, codec: TokenCodec) -> frozenset[int]:
    declared = getattr(generation_config, "eos_token_id", None)
    ids = declared if isinstance(declared, list) else [declared]
    return frozenset(token_id for token_id in (*ids, codec.eos_id) if token_id is not None)


def _require_known_head(model: LoadedModel) -> None:
    ids = torch.arange(min(4, model.vocabulary_size), device=model.device).unsqueeze(0)
    with torch.inference_mode():
        ours = model.head(model.body(ids, use_cache=False).last_hidden_state)
        theirs = model.network(input_ids=ids, use_cache=False).logits
    if not torch.equal(ours, theirs):
        raise ModelError(
            "the architecture transforms its logits in a way the reference engine does not know",
            where=type(model.network).__name__,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars off the terminal while a model loads."""

    def plain(iterable: Iterable[Any], **_: Any) -> Iterable[Any]:
        return iterable

    bars: Any = transformers_logging
    gguf_reader: Any = modeling_gguf_pytorch_utils  # takes tqdm directly and has no switch of its own
    shown, tqdm = bars.is_progress_bar_enabled(), gguf_reader.tqdm
    bars.disable_progress_bar()
    gguf_reader.tqdm = plain
    try:
        yield
    finally:
        gguf_reader.tqdm = tqdm
        if shown:
            bars.enable_progress_bar()
