"""Schemas and values made to hang, to fetch, or to crash whoever checks them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Value = dict[str, Any]
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@dataclass(frozen=True)
class Hostile:
    """A schema, a value of it, and what becomes of them.

    ``outcome``: ``broken`` (refused as the caller's), ``costly`` (refused on
    this value), what the value is found to be, ``valid`` or ``invalid``, or
    ``judged``: any of these.
    """

    id: str
    make: Callable[[], tuple[Any, Value]]
    outcome: str


def remote(address: str) -> tuple[Hostile, ...]:
    """Return the schemas that point to ``address``, where nobody may be asked for anything."""
    other = f"{address}/other.json"
    schemas: dict[str, Any] = {
        "remote $ref": {"$ref": other},
        "remote $ref in a property": {"properties": {"a": {"$ref": f"{other}#/$defs/a"}}},
        "remote $ref under draft 7": {"$schema": DRAFT_7, "items": {"$ref": other}},
        "remote $dynamicRef": {"$dynamicRef": other},
        "remote $schema": {"$schema": other, "type": "object"},
        "remote $id and a relative $ref": {"$id": f"{address}/this.json", "$ref": "that.json"},
        "file $ref": {"$ref": "file:///etc/hostname"},
        "nobody's $ref, behind a choice": {"anyOf": [{}, {"not": {"$ref": other}}]},
    }
    return tuple(
        Hostile(name, lambda schema=schema: (schema, {}), "broken") for name, schema in schemas.items()
    )


def patterns() -> Iterator[Hostile]:
    """Yield expressions that take exponential time where every way is tried."""
    text = "a" * 5_000
    for pattern in (
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^([a-z]+)*$",
        "^(.*)*b$",
        "^(a?){60}a{60}$",
        "^(?=(a+)+$)(a+)+$",
        "(x+x+)+y",
    ):
        schema = {"properties": {"a": {"pattern": pattern}}}
        yield Hostile(f"pattern {pattern}", lambda schema=schema: (schema, {"a": text + "!"}), "invalid")
    for pattern in (r"^(a|a)*\1$", r"^(a*)*\1b$", "(?<!a)(a+)+(?!a)$"):
        schema = {"properties": {"a": {"pattern": pattern}}}
        yield Hostile(f"pattern {pattern}", lambda schema=schema: (schema, {"a": text + "!"}), "costly")
    yield Hostile("pattern of 10^9 states", lambda: ({"pattern": "^((a{1000}){1000}){1000}$"}, {}), "broken")
    yield Hostile(
        "1,000 expressions",
        lambda: ({"allOf": [{"pattern": f"^(a|{n})*$"} for n in range(1_000)]}, {}),
        "broken",
    )
    yield Hostile(
        "300 expressions, each tried step by step",
        lambda: (
            {"properties": {"a": {"anyOf": [{"pattern": f"^(a|a)*(?=b{n})$"} for n in range(300)]}}},
            {"a": text},
        ),
        "costly",
    )
    yield Hostile(
        "one such expression on 1,000 strings",
        lambda: ({"properties": {"a": {"items": {"pattern": r"^(a|a)*\1$"}}}}, {"a": [text[:99]] * 1_000}),
        "costly",
    )
    yield Hostile(
        "20 expressions that compile to megabytes",
        lambda: ({"allOf": [{"pattern": f"((a{{100}}){{100}}){{9}}{n}"} for n in range(20)]}, {}),
        "broken",
    )
    yield Hostile(
        "patternProperties, 400 of them",
        lambda: (
            {"patternProperties": {f"^(a|b|{n})*$": {"type": "string"} for n in range(400)}},
            {"ab" * 40 + str(n): n for n in range(100)},
        ),
        "costly",
    )


def nested(levels: int, key: str = "properties") -> Value:
    """Return a schema of so many levels."""
    schema: Value = {"type": "object"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}} if key == "properties" else {key: schema}
    return schema


def deep_value(levels: int) -> Value:
    """Return an object in an object, so often."""
    value: Value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def depths() -> Iterator[Hostile]:
    """Yield schemas and values of 10,000 levels."""
    for key in ("properties", "not", "items", "additionalProperties"):
        yield Hostile(
            f"schema of 10,000 levels of {key}", lambda key=key: (nested(10_000, key), {}), "broken"
        )
    yield Hostile("value of 10,000 levels", lambda: ({"type": "object"}, deep_value(10_000)), "valid")
    yield Hostile(
        "value of 10,000 levels, recursive schema",
        lambda: ({"additionalProperties": {"$ref": "#"}}, deep_value(10_000)),
        "valid",
    )
    yield Hostile(
        "value of 200 levels", lambda: ({"additionalProperties": {"$ref": "#"}}, deep_value(200)), "valid"
    )


def multiplied(key: str, levels: int, reference: str = "$ref") -> Value:
    """Return definitions each of which refers to the next one twice."""
    steps = {
        f"l{n}": {key: [{reference: f"#/$defs/l{n + 1}"}, {reference: f"#/$defs/l{n + 1}"}]}
        for n in range(levels)
    }
    return {reference: "#/$defs/l0", "$defs": steps | {f"l{levels}": {"type": "string"}}}


def recursions() -> Iterator[Hostile]:
    """Yield references that go round, or multiply."""
    for key in ("allOf", "anyOf", "oneOf"):
        for reference in ("$ref", "$dynamicRef"):
            yield Hostile(
                f"2^60 times {key} by {reference}",
                lambda key=key, reference=reference: (multiplied(key, 60, reference), {}),
                "costly",
            )
        tree = {
            key: [
                {"properties": {"a": {"$ref": "#"}}},
                {"properties": {"a": {"$ref": "#"}}, "maxProperties": 9},
            ]
        }
        yield Hostile(f"{key} of itself twice a level", lambda tree=tree: (tree, deep_value(60)), "costly")
    wide = {"properties": {f"k{n}": {"$ref": "#"} for n in range(5_000)}}
    yield Hostile("5,000 properties, each the schema itself", lambda: (wide, deep_value(60)), "costly")
    yield Hostile("a schema that is itself", lambda: ({"$ref": "#"}, {}), "valid")
    pair = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    yield Hostile("two schemas that are each other", lambda: (pair, {}), "valid")
    yield Hostile(
        "a $dynamicRef to itself", lambda: ({"$dynamicAnchor": "n", "$dynamicRef": "#n"}, {}), "valid"
    )
    anchored = {
        "$dynamicAnchor": "n",
        "anyOf": [
            {"properties": {"a": {"$dynamicRef": "#n"}}, "required": ["a", "b"]},
            {"properties": {"a": {"$dynamicRef": "#n"}}, "required": ["a", "c"]},
        ],
    }
    yield Hostile("anyOf of a $dynamicRef twice a level", lambda: (anchored, deep_value(60)), "costly")
    yield Hostile("not of itself", lambda: ({"not": {"$ref": "#"}}, {}), "judged")
    long = {f"l{n}": {"$ref": f"#/$defs/l{n + 1}"} for n in range(2_000)}
    chain = {"$ref": "#/$defs/l0", "$defs": long | {"l2000": {"type": "object"}}}
    yield Hostile("a chain of 2,000 references", lambda: (chain, {}), "costly")


def sizes() -> Iterator[Hostile]:
    """Yield what is large, or far away."""
    yield Hostile(
        "enum of 100,000 values", lambda: ({"enum": [f"v{n}" for n in range(100_000)]}, {}), "broken"
    )
    yield Hostile(
        "enum of 20,000 objects",
        lambda: ({"properties": {"a": {"enum": [{"n": n} for n in range(20_000)]}}}, {"a": {"n": -1}}),
        "invalid",
    )
    unique = {"properties": {"a": {"uniqueItems": True}}}
    yield Hostile("uniqueItems of 100,000 numbers", lambda: (unique, {"a": list(range(100_000))}), "valid")
    yield Hostile(
        "uniqueItems of 100,000 objects", lambda: (unique, {"a": [{"n": n} for n in range(100_000)]}), "valid"
    )
    yield Hostile(
        "uniqueItems of 100,000 mixed values",
        lambda: (unique, {"a": [[n, {"n": str(n)}, n / 2] for n in range(100_000)]}),
        "valid",
    )
    number = {"a": 1.7976931348623157e308}
    for divisor in (5e-324, 1e-300, 1e300, 123456789.123456789, 10**300):
        schema = {"properties": {"a": {"multipleOf": divisor}}}
        yield Hostile(f"multipleOf {divisor:.3g}", lambda schema=schema: (schema, number), "judged")
    yield Hostile(
        "contains of 100,000 items",
        lambda: (
            {"properties": {"a": {"contains": {"const": -1}, "minContains": 50_000}}},
            {"a": list(range(100_000))},
        ),
        "invalid",
    )
    yield Hostile(
        "maxLength of 10^300", lambda: ({"properties": {"a": {"maxLength": 10**300}}}, {"a": "a"}), "judged"
    )
    yield Hostile(
        "dependentSchemas, 1,000 of them",
        lambda: (
            {"dependentSchemas": {f"k{n}": {"minProperties": n} for n in range(1_000)}},
            {f"k{n}": n for n in range(1_000)},
        ),
        "valid",
    )
    yield Hostile(
        "100,000 properties too many",
        lambda: ({"additionalProperties": False}, {f"k{n}": n for n in range(100_000)}),
        "invalid",
    )
    yield Hostile(
        "unevaluatedProperties behind 1,000 branches",
        lambda: (
            {
                "anyOf": [{"properties": {f"k{n}": {"type": "integer"}}} for n in range(1_000)],
                "unevaluatedProperties": False,
            },
            {f"k{n}": n for n in range(1_000)},
        ),
        "valid",
    )


def everything(address: str = "http://127.0.0.1:9") -> tuple[Hostile, ...]:
    """Return the whole set."""
    return (*remote(address), *patterns(), *depths(), *recursions(), *sizes())


def written(value: Value) -> str:
    """Return the value as JSON, also where Python's writer gives up on its depth."""
    try:
        return json.dumps(value)
    except RecursionError:
        return '{"a": ' * 10_000 + "{}" + "}" * 10_000
