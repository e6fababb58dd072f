"""Model names: ``NAME@variant+variant:layers=7,12``."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from reference_engine.models.changes import REMEDY as CHANGES_REMEDY
from reference_engine.models.changes import Rope, Tuned, parse_change
from reference_engine.models.kinds import (
    CACHES,
    CHANGES,
    DEFAULT_GROUP,
    DTYPES,
    INTEGERS,
    ROUNDINGS,
    WEIGHTS,
)
from ringtrue.errors import ModelError

_OPTIONS = {"group": re.compile(r"[1-9]\d*"), "layers": re.compile(r"\d+(?:,\d+)*")}


@dataclass(frozen=True, slots=True)
class Variant:
    """One departure from the base: a compute dtype, rounded weights, or a rounded key-value cache.

    ``layers`` limits a rounding to these decoder layers, counted from 0;
    ``None`` means all of them. ``group`` is how many weights of an integer
    kind share a scale; ``None`` means 32.
    """

    kind: str
    layers: tuple[int, ...] | None = None
    group: int | None = None

    def covers(self, layer: int) -> bool:
        """Whether the variant changes this decoder layer."""
        return self.layers is None or layer in self.layers

    def __str__(self) -> str:
        group = f":group={self.group}" if self.group is not None else ""
        layers = f":layers={','.join(map(str, self.layers))}" if self.layers is not None else ""
        return f"{self.kind}{group}{layers}"


@dataclass(frozen=True, slots=True)
class ModelName:
    """A base model and its variants, later ones overriding earlier ones.

    ``tuned`` changes the weights before anything is rounded, ``rope`` the
    rotary embeddings; both concern the whole model, and of several the last
    counts. ``str`` gives the name back, these two first, so that equal names
    are equal strings.
    """

    base: str
    variants: tuple[Variant, ...] = ()
    tuned: Tuned | None = None
    rope: Rope | None = None

    @property
    def is_base(self) -> bool:
        """Whether the name asks for the base as it is, in float32."""
        return self == ModelName(self.base)

    @property
    def dtype(self) -> str:
        """The dtype weights are held and computed in: one of ``DTYPES``, ``fp32`` unless named."""
        return next((v.kind for v in reversed(self.variants) if v.kind in DTYPES), "fp32")

    def weights(self, layer: int) -> Variant | None:
        """Return how the weights of a decoder layer are rounded, ``None`` for exact weights."""
        return self._last(WEIGHTS, layer)

    def cache(self, layer: int) -> str | None:
        """Return how the keys and values of a decoder layer are rounded, ``None`` for exact ones."""
        found = self._last(CACHES, layer)
        return found.kind if found else None

    @property
    def whole_weights(self) -> Variant | None:
        """The last rounding of weights that is not limited to some layers."""
        return next((v for v in reversed(self.variants) if v.kind in WEIGHTS and v.layers is None), None)

    @property
    def rounds_cache(self) -> bool:
        """Whether keys and values of any layer are rounded."""
        return any(v.kind in CACHES for v in self.variants)

    @property
    def layers(self) -> frozenset[int]:
        """Every decoder layer that some variant names."""
        return frozenset(layer for v in self.variants for layer in v.layers or ())

    @property
    def exact(self) -> ModelName:
        """The same model in the same dtype with nothing rounded; ``tuned`` and ``rope`` stay."""
        return self.with_dtype(self.dtype, keep=())

    @property
    def unchanged(self) -> ModelName:
        """The base in the same dtype: nothing rounded, tuned or turned."""
        return ModelName(self.base).with_dtype(self.dtype)

    @property
    def without_cache(self) -> ModelName:
        """The same model with exact keys and values: another name for the same weights."""
        return self.with_dtype(self.dtype, keep=WEIGHTS)

    @property
    def canonical(self) -> ModelName:
        """One spelling for all names of a model: weights, cache, dtype, whose order changes nothing."""
        kept = tuple(v for kinds in (WEIGHTS, CACHES) for v in self.variants if v.kind in kinds)
        return replace(self, variants=(*kept, *self.with_dtype(self.dtype, keep=()).variants))

    def with_dtype(self, dtype: str, *, keep: Collection[str] = ROUNDINGS) -> ModelName:
        """Return the name in another dtype, changed alike, with the roundings whose kind is in ``keep``.

        Raises:
            ModelError: there is no such dtype.
        """
        if dtype not in DTYPES:
            raise ModelError(f"there is no dtype {dtype!r}", remedy=f"Use one of {', '.join(DTYPES)}")
        rounded = tuple(v for v in self.variants if v.kind in keep)
        return replace(self, variants=rounded if dtype == "fp32" else (*rounded, Variant(dtype)))

    def _last(self, kinds: Collection[str], layer: int) -> Variant | None:
        return next((v for v in reversed(self.variants) if v.kind in kinds and v.covers(layer)), None)

    def __str__(self) -> str:
        parts = [part for part in (self.tuned, self.rope, *self.variants) if part is not None]
        return f"{self.base}@{'+'.join(map(str, parts))}" if parts else self.base


def parse_name(text: str) -> ModelName:
    """Return the model that ``text`` names.

    Raises:
        ModelError: the name is empty, or a variant or one of its options does
            not exist; the remedy lists those that do.
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
    name = ModelName(base)
    for part in tail.split("+") if at else ():
        name = _with_part(name, part, text)
    return name


def _with_part(name: ModelName, part: str, text: str) -> ModelName:
    if part.split(":", maxsplit=1)[0].lower() not in CHANGES:
        return replace(name, variants=(*name.variants, _parse_variant(part, text)))
    change = parse_change(part, text)
    return replace(name, rope=change) if isinstance(change, Rope) else replace(name, tuned=change)


def _parse_variant(part: str, name: str) -> Variant:
    written, *pairs = part.split(":")
    kind = written.lower()
    if kind not in DTYPES and kind not in ROUNDINGS:
        raise _unknown(part, name)
    options = _parse_options(pairs, part, name)
    if options and kind in DTYPES:
        raise ModelError(
            f"the dtype {kind} applies to the whole model and takes no {' or '.join(options)}",
            where=repr(name),
            remedy=f"Write {kind} alone, and layers after a rounding, for example int4:layers=3",
        )
    if "group" in options and kind not in INTEGERS:
        raise ModelError(
            f"{kind} takes no group",
            where=repr(name),
            remedy=f"Only {', '.join(INTEGERS)} have a group size to choose, for example int4:group=128",
        )
    group = int(options.get("group", DEFAULT_GROUP))
    layers = tuple(int(layer) for layer in options["layers"].split(",")) if "layers" in options else None
    return Variant(kind, layers, group if group != DEFAULT_GROUP else None)


def _parse_options(pairs: list[str], part: str, name: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in _OPTIONS or key in options or not _OPTIONS[key].fullmatch(value):
            raise _unknown(part, name)
        options[key] = value
    return options


def _unknown(part: str, name: str) -> ModelError:
    return ModelError(
        f"there is no model variant {part!r}",
        where=repr(name),
        remedy=f"Variants are {', '.join((*DTYPES, *ROUNDINGS))}; those that round take layers, "
        "the int ones a group size too, for example int3:group=64:layers=7,12. " + CHANGES_REMEDY,
    )
