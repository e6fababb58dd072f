"""How much work a schema can cause: references that multiply are counted before a value is checked.

A schema of a few lines can ask for 2^n evaluations by referring to itself
twice on each of n levels. The bound here follows keywords and local references
only; it never looks at a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MOST_WORK = 100_000  # evaluations along one path of a value: some 10 ms
MOST_COUNTED = 20_000  # steps of counting them, some 0.05 s: what would take more counts as too much
MOST_DEPTH = 64  # levels of a value that are told apart
_ALONE = ("not", "if", "then", "else")
_LISTS = ("allOf", "anyOf", "oneOf")
_MAPS = ("dependentSchemas",)
_CHILD = ("additionalProperties", "unevaluatedProperties", "items", "additionalItems", "contains")
_CHILD_MAPS = ("properties", "patternProperties")
_CHILD_LISTS = ("prefixItems", "items")


class Cost:
    """The greatest number of evaluations along one path of a value, by its depth."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._known: dict[tuple[int, int], int] = {}
        self._size = _objects_in(schema)

    def at_depth(self, depth: int) -> int:
        """Return the bound for a value with ``depth`` levels, at most ``MOST_WORK`` + 1."""
        if self._size * (depth + 1) > MOST_COUNTED:
            return MOST_WORK + 1
        try:
            return self._work(self._root, depth, frozenset())
        except RecursionError:  # a chain of references longer than can be followed here, or there
            return MOST_WORK + 1

    def _work(self, node: object, depth: int, above: frozenset[int]) -> int:
        if not isinstance(node, Mapping) or id(node) in above:
            return 1
        key = (id(node), depth)
        if key not in self._known:
            inside = above | {id(node)}
            work = 1 + sum(self._work(part, depth, inside) for part in self._here(node))
            if depth > 0:
                # Each child of a value is met by one entry of a map or list; the path takes the dearest.
                work += sum(
                    max((self._work(part, depth - 1, frozenset()) for part in group), default=0)
                    for group in _children(node)
                )
            self._known[key] = min(work, MOST_WORK + 1)
        return self._known[key]

    def _here(self, node: Mapping[str, Any]) -> Iterator[object]:
        reference = node.get("$ref", node.get("$dynamicRef", node.get("$recursiveRef")))
        if isinstance(reference, str):
            yield self._target(reference)
        for name in _ALONE:
            if name in node:
                yield node[name]
        for name in _LISTS:
            parts = node.get(name)
            yield from parts if isinstance(parts, list) else ()
        for name in _MAPS:
            parts = node.get(name)
            yield from parts.values() if isinstance(parts, Mapping) else ()

    def _target(self, reference: str) -> object:
        place: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, Mapping):
                place = place.get(name)
            elif isinstance(place, list) and name.isdigit() and int(name) < len(place):
                place = place[int(name)]
            else:
                return None
        return place


def _children(node: Mapping[str, Any]) -> Iterator[list[object]]:
    for name in _CHILD:
        if isinstance(node.get(name), Mapping):
            yield [node[name]]
    for name in _CHILD_MAPS:
        parts = node.get(name)
        if isinstance(parts, Mapping):
            yield list(parts.values())
    for name in _CHILD_LISTS:
        parts = node.get(name)
        if isinstance(parts, list):
            yield list(parts)


def _objects_in(schema: object) -> int:
    left, count = [schema], 0
    while left:
        node = left.pop()
        if isinstance(node, Mapping):
            count += 1
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)
    return count


def depth_of(value: object, limit: int = MOST_DEPTH) -> int:
    """Return how many levels of objects and lists a value has, ``limit`` at most."""
    level, depth = [value], 0
    while depth < limit:
        level = [
            item
            for holder in level
            if isinstance(holder, dict | list)
            for item in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not level:
            break
        depth += 1
    return depth
