"""Changes of the whole model that a name can ask for: training, noise on the weights, a rotary base."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ringtrue.errors import ModelError

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE]-?\d+)?")
_WHOLE = re.compile(r"\d{1,18}")
_WHOLE_OPTIONS = ("steps", "seed")
_FORMS = {
    "rope": (("base",),),
    "tuned": (("steps", "rate"), ("noise",)),
}
REMEDY = "Write rope:base=500000, tuned:steps=1:rate=1e-5 or tuned:noise=0.01; the last two also take a seed"


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary embeddings computed from another base."""

    base: float

    def __str__(self) -> str:
        return f"rope:base={_written(self.base)}"


@dataclass(frozen=True, slots=True)
class Training:
    """``steps`` steps of training at the learning rate ``rate``; ``seed`` chooses what is read."""

    steps: int
    rate: float
    seed: int = 0

    def __str__(self) -> str:
        return f"tuned:steps={self.steps}:rate={_written(self.rate)}{_seed(self.seed)}"


@dataclass(frozen=True, slots=True)
class Noise:
    """Gaussian noise on every weight, ``sigma`` times the root mean square of the tensor it stands in."""

    sigma: float
    seed: int = 0

    def __str__(self) -> str:
        return f"tuned:noise={_written(self.sigma)}{_seed(self.seed)}"


Tuned = Training | Noise


def parse_change(part: str, name: str) -> Rope | Tuned:
    """Return the change that ``part`` of the model name ``name`` asks for.

    Equal numbers are equal changes, however they are written.

    Raises:
        ModelError: an option is missing, unknown, written twice, or no positive number.
    """
    written, *pairs = part.split(":")
    kind = written.lower()
    options = _options(pairs, part, name)
    required = options.keys() - ({"seed"} if kind == "tuned" else set())
    if required not in [set(form) for form in _FORMS[kind]]:
        raise _unknown(part, name)
    if kind == "rope":
        return Rope(options["base"])
    seed = int(options.get("seed", 0))
    if "noise" in options:
        return Noise(options["noise"], seed)
    return Training(int(options["steps"]), options["rate"], seed)


def _options(pairs: list[str], part: str, name: str) -> Mapping[str, float]:
    options: dict[str, float] = {}
    for pair in pairs:
        key, _, text = pair.partition("=")
        pattern = _WHOLE if key in _WHOLE_OPTIONS else _NUMBER
        if key in options or not pattern.fullmatch(text):
            raise _unknown(part, name)
        # A whole number of 18 digits has no exact float.
        options[key] = int(text) if key in _WHOLE_OPTIONS else float(text)
        positive = math.isfinite(options[key]) and options[key] > 0
        if not positive and key != "seed":
            raise ModelError(f"{key} must be a positive number", where=repr(name), remedy=REMEDY)
    return options


def _unknown(part: str, name: str) -> ModelError:
    return ModelError(f"there is no change {part!r} of a model", where=repr(name), remedy=REMEDY)


def _seed(seed: int) -> str:
    return f":seed={seed}" if seed else ""


def _written(value: float) -> str:
    """The shortest text that reads back as ``value``, without the plus sign that parts of a name need."""
    return repr(value).removesuffix(".0").replace("e+", "e")
