"""JSON Schemas of callers: compiled once by content, checked without network, and explained.

Checks go through jsonschema-rs, whose regular expressions cannot run away;
jsonschema puts the reason into words. What would still cost much is refused
before it is tried: see `schema_cost` and `schema_patterns`. The dialect is the one that ``$schema``
names, else 2020-12. Formats are annotations in every dialect: they are never
asserted (``FORMATS``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import orjson

from toolcall_validator.asked import strings_of
from toolcall_validator.schema_cost import MOST_DEPTH, MOST_WORK, Cost, depth_of
from toolcall_validator.schema_patterns import MOST_PATTERNS, Patterns, patterns_of

FORMATS = "annotated"
DEFAULT_DIALECT = "2020-12"
MOST_BYTES = 256 * 1024  # of a schema
MOST_LEVELS = 96  # of a schema; the compiler's own stack ends soon after
MOST_ERRORS = 64  # read of one value
MOST_WORDS = 1_000  # characters of an explanation
TOO_COSTLY = "its references or regular expressions multiply: not scored"
_DIALECTS = (
    ("draft/2020-12/schema", "2020-12"),
    ("draft/2019-09/schema", "2019-09"),
    ("draft-07/schema", "draft-07"),
    ("draft-06/schema", "draft-06"),
    ("draft-04/schema", "draft-04"),
)
_FORBIDDING = ("additionalProperties", "unevaluatedProperties")


@dataclass(frozen=True, slots=True)
class Violation:
    """One keyword that a value does not meet, and the way to it in the value."""

    keyword: str
    path: tuple[str | int, ...]


class TooCostlyError(Exception):
    """The schema multiplies its own references or expressions on this value: it is not checked."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A compiled schema, or why there is none (``broken``): the caller's fault either way."""

    dialect: str
    broken: str = ""
    check: Any = None  # a validator of jsonschema-rs, which has no common type
    cost: Cost | None = None  # None where no value can make references multiply
    patterns: Patterns | None = None  # None where there are none
    source: Any = None

    def accepts(self, value: object) -> bool:
        """Tell whether a value meets the schema.

        Raises:
            TooCostlyError: see there.
        """
        self._affordable(value)
        try:
            accepted = bool(self.check.is_valid(value))
        except (ValueError, UnicodeEncodeError):
            return False  # a lone surrogate or a depth that the checker cannot hold
        if not accepted and self.patterns is not None and self.patterns.step_by_step:
            next(self.violations(value), None)  # raises where no step was left to find out
        return accepted

    def violations(self, value: object) -> Iterator[Violation]:
        """Yield what a value does not meet, alternatives resolved to the one it comes closest to.

        Raises:
            TooCostlyError: see there.
        """
        self._affordable(value)
        try:
            for count, error in enumerate(self.check.iter_errors(value)):
                if _undecided(error):
                    raise TooCostlyError
                if count == MOST_ERRORS:
                    return
                yield from _resolved(error)
        except (ValueError, UnicodeEncodeError):
            yield Violation("unreadable", ())

    def explain(self, value: object) -> str:
        """Return the reason that jsonschema finds most telling, in a sentence that quotes the value.

        A value that is accepted has none: ``""``. Regular expressions are left to
        jsonschema-rs: Python's can run away.
        """
        if self.accepts(value):
            return ""
        told = next((str(found.message) for found in self.check.iter_errors(value)), "")
        if len(told) > MOST_WORDS:  # it quotes a large value: jsonschema would take seconds
            return told[:MOST_WORDS]
        import jsonschema  # noqa: PLC0415 - slow to import, and needed only to explain
        import referencing.jsonschema  # noqa: PLC0415

        plain = jsonschema.validators.extend(
            jsonschema.validators.validator_for(self.source, default=jsonschema.Draft202012Validator),
            dict.fromkeys(
                ("pattern", "patternProperties", "unevaluatedProperties", "additionalProperties"), _nothing
            ),
        )
        try:
            error = jsonschema.exceptions.best_match(
                plain(self.source, registry=referencing.jsonschema.EMPTY_REGISTRY).iter_errors(value)
            )
        except RecursionError:  # a schema that is its own opposite
            return told
        return (str(error.message) if error is not None else told)[:MOST_WORDS]

    def _affordable(self, value: object) -> None:
        if self.cost is not None and self.cost.at_depth(depth_of(value)) > MOST_WORK:
            raise TooCostlyError
        if self.patterns is not None and self.patterns.multiply:
            strings = sum(1 for _ in strings_of(value))
            if not self.patterns.affordable(strings):
                raise TooCostlyError


class Schemas:
    """Compiled schemas by content, the ``most`` last used ones."""

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._known: OrderedDict[bytes, Schema] = OrderedDict()

    def get(self, schema: object) -> Schema:
        """Return the compiled schema; a broken one comes back with the reason. Never raises."""
        try:
            key = orjson.dumps(schema)
        except (TypeError, ValueError, RecursionError):
            return Schema(DEFAULT_DIALECT, "it is no JSON")
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _compiled(schema, key)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return known


def dialect_of(schema: object) -> str:
    """Return the short name of the dialect that ``$schema`` names, else the address itself."""
    named = schema.get("$schema") if isinstance(schema, Mapping) else None
    if not isinstance(named, str):
        return DEFAULT_DIALECT
    address = named.removesuffix("#")
    return next((name for ending, name in _DIALECTS if address.endswith(ending)), named[:200])


def _compiled(schema: object, text: bytes) -> Schema:
    dialect = dialect_of(schema)
    if not isinstance(schema, dict | bool):
        return Schema(dialect, "it is neither an object nor a boolean")
    if len(text) > MOST_BYTES:
        return Schema(dialect, f"it is larger than {MOST_BYTES:,} bytes")
    if depth_of(schema, MOST_LEVELS + 1) > MOST_LEVELS:
        return Schema(dialect, f"it is nested deeper than {MOST_LEVELS} levels")
    patterns = patterns_of(schema) if b'"pattern' in text else None
    if patterns is not None and patterns.different > MOST_PATTERNS:
        return Schema(dialect, f"it has more than {MOST_PATTERNS} regular expressions")
    options = patterns.options() if patterns is not None else None
    try:
        check = jsonschema_rs.validator_for(
            schema, validate_formats=False, offline=True, pattern_options=options
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return Schema(dialect, str(error).partition("\n")[0][:300])
    referring = b"Ref" in text or b"$ref" in text
    cost = Cost(schema) if referring and isinstance(schema, Mapping) else None
    if cost is not None and cost.at_depth(MOST_DEPTH) <= MOST_WORK:
        cost = None
    return Schema(dialect, "", check, cost, patterns, schema)


def _nothing(*_: object) -> None:
    return None


def _resolved(error: Any) -> Iterator[Violation]:
    """Yield the violations behind an error: of a choice, those of the branch that came closest."""
    branches: Sequence[Sequence[Any]] = getattr(error.kind, "context", None) or ()
    told = [branch for branch in branches if branch]
    if error.kind.name in ("anyOf", "oneOf") and told:
        for inner in min(told, key=_distance):
            yield from _resolved(inner)
        return
    yield Violation(_keyword(error), tuple(error.instance_path))


def _undecided(error: Any) -> bool:
    """Tell whether an expression ran out of steps, here or in an alternative."""
    branches: Sequence[Sequence[Any]] = getattr(error.kind, "context", None) or ()
    return isinstance(error.kind, jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded) or any(
        _undecided(inner) for branch in branches for inner in branch
    )


def _keyword(error: Any) -> str:
    """Return the keyword that is not met; ``false`` alone is told by the keyword that it stands under."""
    name = str(error.kind.name)
    under = list(error.schema_path)
    if name == "falseSchema" and under and under[-1] in _FORBIDDING and "properties" not in under[-2:-1]:
        return str(under[-1])
    return name


def _distance(branch: Sequence[Any]) -> tuple[int, int, int]:
    """Order branches: errors deep in the value come first, then few errors, null alternatives last."""
    deepest = max(len(error.instance_path) for error in branch)
    null = any(
        error.kind.name == "type" and "null" in str(error.message).rsplit("type", 1)[-1] for error in branch
    )
    return (-deepest, int(null), len(branch))
