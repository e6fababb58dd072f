"""A value that meets a JSON Schema, written from the schema and a seed, as constrained decoding would."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from reference_engine.server.tool_calls.patterns import MOST, UnwritableError, matching
from toolcall_validator.schemas import Schemas, TooCostlyError

_ROOM = 3  # levels below which only what is required is written
_DEEPEST = 24  # levels before a schema counts as endless
_TRIES = 8  # values written before a schema counts as one that cannot be met
_FORMATS = {
    "date": "2024-05-17",
    "time": "09:30:00Z",
    "date-time": "2024-05-17T09:30:00Z",
    "email": "ada@example.org",
    "uri": "https://example.org/a",
    "hostname": "example.org",
    "ipv4": "192.0.2.7",
    "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e",
}
_HINTS = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "minProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "contains")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


def value_for(schema: Any, seed: int, words: Sequence[str], schemas: Schemas) -> Any:
    """Return a value that meets ``schema``, always the same for one schema, seed and words.

    Every property that is named is written down to three levels, below only
    the required ones. ``words`` are what strings are made of. The value was
    checked against the schema: invariant of this module.

    Raises:
        UnwritableError: the schema does not compile, or no value was found that meets it.
    """
    if schema in (None, True, {}):
        return {}
    compiled = schemas.get(schema)
    if compiled.broken:
        raise UnwritableError(f"it does not compile: {compiled.broken}")
    for attempt in range(_TRIES):
        writer = _Writer(schema, random.Random(seed * _TRIES + attempt), words, attempt)  # noqa: S311
        value = writer.write(schema, 0)
        try:
            if compiled.accepts(value):
                return value
        except TooCostlyError as error:
            raise UnwritableError("its references multiply") from error
    raise UnwritableError("no value was found that meets it")


class _Writer:
    """Writes one value; ``attempt`` turns to other alternatives, and to required properties alone."""

    def __init__(self, root: Any, rng: random.Random, words: Sequence[str], attempt: int) -> None:
        self._root = root
        self._rng = rng
        self._words = words or ("word",)
        self._attempt = attempt

    def write(self, schema: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise UnwritableError("it requires itself without end")
        if schema is True:
            return self._text({})
        if not isinstance(schema, Mapping):
            raise UnwritableError("a part of it allows nothing")
        rules = self._resolved(schema, depth)
        if "const" in rules:
            return rules["const"]
        if isinstance(rules.get("enum"), list) and rules["enum"]:
            return self._rng.choice(rules["enum"])
        return self._of_type(self._type(rules), rules, depth)

    def _of_type(self, kind: str, rules: Mapping[str, Any], depth: int) -> Any:
        if kind == "object":
            return self._object(rules, depth)
        if kind == "array":
            return self._array(rules, depth)
        if kind in ("number", "integer"):
            return self._number(rules, whole=kind == "integer")
        if kind == "boolean":
            return self._rng.random() < 0.5
        return None if kind == "null" else self._text(rules)

    def _resolved(self, schema: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
        """Merge what references, conjunctions and one of the alternatives add."""
        rules = dict(schema)
        for _ in range(_DEEPEST):
            if isinstance(rules.get("$ref"), str):
                rules = _merged(rules, self._pointed(rules.pop("$ref")))
            elif isinstance(rules.get("allOf"), list):
                for part in rules.pop("allOf"):
                    rules = _merged(rules, part)
            elif any(isinstance(rules.get(key), list) and rules[key] for key in ("anyOf", "oneOf")):
                key = "anyOf" if isinstance(rules.get("anyOf"), list) else "oneOf"
                rules = _merged(rules, self._option(rules.pop(key), depth))
            else:
                return rules
        raise UnwritableError("its references go round")

    def _option(self, options: Sequence[Any], depth: int) -> Any:
        simple = [option for option in options if _is_null(option)] if depth > _ROOM else []
        full = simple or [option for option in options if not _is_null(option)] or list(options)
        return full[self._attempt % len(full)]

    def _pointed(self, reference: str) -> Any:
        here = self._root
        if not reference.startswith("#"):
            raise UnwritableError(f"the reference {reference!r}")
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(here, Mapping) and name in here:
                here = here[name]
            elif isinstance(here, list) and name.isdecimal() and int(name) < len(here):
                here = here[int(name)]
            else:
                raise UnwritableError(f"the reference {reference!r}")
        return here

    def _type(self, rules: Mapping[str, Any]) -> str:
        stated = rules.get("type")
        if isinstance(stated, list) and stated:
            stated = next((kind for kind in stated if kind != "null"), "null")
        if isinstance(stated, str):
            return stated
        return next((kind for kind, keys in _HINTS if any(key in rules for key in keys)), "string")

    def _object(self, rules: Mapping[str, Any], depth: int) -> dict[str, Any]:
        named, extra = rules.get("properties") or {}, rules.get("additionalProperties", True)
        required = rules.get("required") or []
        lean = depth >= _ROOM or self._attempt >= _TRIES // 2
        keys = [key for key in named if not lean or key in required]
        keys += [key for key in required if key not in named]
        value = {key: self.write(named.get(key, extra), depth + 1) for key in keys}
        fewest = _fewest(rules, "minProperties")
        if not named and isinstance(extra, Mapping) and not lean:
            fewest = max(fewest, 1)
        for place in range(fewest - len(value)):
            value[f"{self._rng.choice(self._words)}_{place}"] = self.write(extra, depth + 1)
        return value

    def _array(self, rules: Mapping[str, Any], depth: int) -> list[Any]:
        items = rules.get("items", True)
        first = rules.get("prefixItems", items if isinstance(items, list) else [])
        rest = rules.get("additionalItems", True) if isinstance(items, list) else items
        fewest, most = _fewest(rules, "minItems"), int(rules.get("maxItems", _DEEPEST))
        wanted = fewest if depth >= _ROOM else max(fewest, len(first), 0 if first else 2)
        if rest is False:
            wanted = min(wanted, len(first))
        value: list[Any] = []
        for place in range(min(wanted, most)):
            schema = first[place] if place < len(first) else rest
            value.append(self._another(schema, value if rules.get("uniqueItems") else [], depth))
        if "contains" in rules:
            found = self.write(rules["contains"], depth + 1)
            value = [found, *value[1:]] if not first else [*value, found]
        distinct = [item for place, item in enumerate(value) if item not in value[:place]]
        return distinct if rules.get("uniqueItems") else value

    def _another(self, schema: Any, taken: Sequence[Any], depth: int) -> Any:
        found = self.write(schema, depth + 1)
        for _ in range(_DEEPEST):
            if found not in taken:
                break
            found = self.write(schema, depth + 1)
        return found

    def _number(self, rules: Mapping[str, Any], *, whole: bool) -> float:
        low, high = _bounds(rules, whole=whole)
        step = rules.get("multipleOf")
        if step:
            first, last = math.ceil(low / step), math.floor(high / step)
            return (
                int(found)
                if (found := self._rng.randint(first, max(first, last)) * step) == int(found)
                else found
            )
        if whole or (math.ceil(low) < math.floor(high)):
            return self._rng.randint(math.ceil(low), max(math.ceil(low), math.floor(high)))
        return (low + high) / 2

    def _text(self, rules: Mapping[str, Any]) -> str:
        if isinstance(rules.get("pattern"), str):
            return matching(rules["pattern"], self._rng)
        if rules.get("format") in _FORMATS:
            return _FORMATS[rules["format"]]
        text = " ".join(self._rng.choice(self._words) for _ in range(self._rng.randint(1, 2)))
        fewest, most = _fewest(rules, "minLength"), rules.get("maxLength")
        text = text.ljust(fewest, "x")
        return text if most is None else text[: int(most)]


def _fewest(rules: Mapping[str, Any], key: str) -> int:
    fewest = int(rules.get(key, 0))
    if fewest > MOST:
        raise UnwritableError(f"{key} above {MOST:,}")
    return fewest


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _merged(rules: Mapping[str, Any], more: Any) -> dict[str, Any]:
    """Return both, properties and requirements united, the others as the later one says."""
    if more is True:
        return dict(rules)
    if not isinstance(more, Mapping):
        raise UnwritableError("a part of it allows nothing")
    both = {**rules, **more}
    if "properties" in rules and "properties" in more:
        both["properties"] = {**rules["properties"], **more["properties"]}
    if "required" in rules and "required" in more:
        both["required"] = [*rules["required"], *more["required"]]
    return both


def _bounds(rules: Mapping[str, Any], *, whole: bool) -> tuple[float, float]:
    """Return the least and the greatest number, both allowed."""
    step = 1 if whole else 1e-3
    lows = [
        rules[key] + margin
        for key, margin in (("minimum", 0), ("exclusiveMinimum", step))
        if _is_number(rules, key)
    ]
    highs = [
        rules[key] - margin
        for key, margin in (("maximum", 0), ("exclusiveMaximum", step))
        if _is_number(rules, key)
    ]
    low = max(lows) if lows else None
    high = min(highs) if highs else None
    if low is None:
        low = 1 if high is None or high >= 1 else high - 9
    return low, low + 9 if high is None else high


def _is_number(rules: Mapping[str, Any], key: str) -> bool:
    return isinstance(rules.get(key), int | float) and not isinstance(rules.get(key), bool)
