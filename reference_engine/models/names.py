"""Model names: ``NAME@variant+variant:layers=7,12``."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from ringtrue.errors import ModelError

DTYPES = ("fp32", "bf16", "fp16")
WEIGHTS = {"int8": 8, "int4": 4, "int3": 3}

_VARIANT = re.compile(r"(?P<kind>[^:]*)(?::layers=(?P<layers>\d+(?:,\d+)*))?")


@dataclass(frozen=True, slots=True)
class Variant:
    """One departure from the base: a compute dtype, or rounded weights.

    ``layers`` limits rounded weights to these decoder layers, counted from 0;
    ``None`` means all of them.
    """

    kind: str
    layers: tuple[int, ...] | None = None

    def __str__(self) -> str:
        if self.layers is None:
            return self.kind
        return f"{self.kind}:layers={','.join(map(str, self.layers))}"


@dataclass(frozen=True, slots=True)
class ModelName:
    """A base model and its variants, later ones overriding earlier ones.

    ``str`` gives the name back, so that equal names are equal strings.
    """

    base: str
    variants: tuple[Variant, ...] = ()

    @property
    def dtype(self) -> str:
        """The dtype weights are held and computed in: one of ``DTYPES``, ``fp32`` unless named."""
        return next((v.kind for v in reversed(self.variants) if v.kind in DTYPES), "fp32")

    def bits(self, layer: int) -> int | None:
        """Return the bits that the weights of a decoder layer are rounded to, ``None`` for exact weights."""
        for variant in reversed(self.variants):
            if variant.kind in WEIGHTS and (variant.layers is None or layer in variant.layers):
                return WEIGHTS[variant.kind]
        return None

    @property
    def layers(self) -> frozenset[int]:
        """Every decoder layer that some variant names."""
        return frozenset(layer for v in self.variants for layer in v.layers or ())

    @property
    def exact(self) -> ModelName:
        """The same model in the same dtype with its weights unrounded."""
        return self.with_dtype(self.dtype, keep=())

    def with_dtype(self, dtype: str, *, keep: Collection[str] = tuple(WEIGHTS)) -> ModelName:
        """Return the name in another dtype, with the rounded weights whose kind is in ``keep``.

        Raises:
            ModelError: there is no such dtype.
        """
        if dtype not in DTYPES:
            raise ModelError(f"there is no dtype {dtype!r}", remedy=f"Use one of {', '.join(DTYPES)}")
        rounded = tuple(v for v in self.variants if v.kind in keep)
        return replace(self, variants=rounded if dtype == "fp32" else (*rounded, Variant(dtype)))

    def __str__(self) -> str:
        return f"{self.base}@{'+'.join(map(str, self.variants))}" if self.variants else self.base


def parse_name(text: str) -> ModelName:
    """Return the model that ``text`` names.

    Raises:
        ModelError: the name is empty or a variant does not exist; the remedy lists those that do.
    """
    base, at, tail = text.rpartition("@")
    if not at:
        base, tail = text, ""
    if not base or (at and not tail):
        raise ModelError(
            "a model name is incomplete",
            where=repr(text),
            remedy="Write NAME or NAME@variant+variant, for example smollm2-135m@int4+bf16",
        )
    return ModelName(base, tuple(_parse_variant(part, text) for part in tail.split("+")) if at else ())


def _parse_variant(part: str, name: str) -> Variant:
    match = _VARIANT.fullmatch(part)
    kind = match["kind"] if match else part
    if match is None or (kind not in DTYPES and kind not in WEIGHTS):
        raise ModelError(
            f"there is no model variant {part!r}",
            where=repr(name),
            remedy=f"Variants are {', '.join((*DTYPES, *WEIGHTS))}; "
            "the int ones take layers, for example int3:layers=7,12",
        )
    if match["layers"] is None:
        return Variant(kind)
    if kind in DTYPES:
        raise ModelError(
            f"the dtype {kind} applies to the whole model and takes no layers",
            where=repr(name),
            remedy=f"Write {kind} alone, and layers after int8, int4 or int3",
        )
    return Variant(kind, tuple(int(layer) for layer in match["layers"].split(",")))
