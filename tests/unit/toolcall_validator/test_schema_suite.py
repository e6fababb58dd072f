"""The official JSON-Schema-Test-Suite, asked through `Schemas`, as arguments are judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from toolcall_validator.schemas import Schemas

SUITE = Path(__file__).parents[2] / "data" / "json_schema_test_suite"
DIALECTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
JUDGED = {"draft7": 890, "draft2020-12": 1208}  # tests; every other one is skipped below

FETCHED = "Retrieval is disabled"
OWN_DIALECT = "Unknown meta-schema"
# What is skipped, and the reason that `Schema.broken` gives: a remote document is never fetched, be it a
# reference or the caller's own dialect. "*" stands for a whole file.
SKIPPED = {
    ("draft7", "refRemote.json", "*"): FETCHED,
    ("draft2020-12", "refRemote.json", "*"): FETCHED,
    (
        "draft2020-12",
        "dynamicRef.json",
        "strict-tree schema, guards against misspelled properties",
    ): FETCHED,
    (
        "draft2020-12",
        "dynamicRef.json",
        "tests for implementation dynamic anchor and reference link",
    ): FETCHED,
    (
        "draft2020-12",
        "dynamicRef.json",
        "$ref and $dynamicAnchor are independent of order - $defs first",
    ): FETCHED,
    (
        "draft2020-12",
        "dynamicRef.json",
        "$ref and $dynamicAnchor are independent of order - $ref first",
    ): FETCHED,
    ("draft2020-12", "dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor"): FETCHED,
    (
        "draft2020-12",
        "vocabulary.json",
        "schema that uses custom metaschema with with no validation vocabulary",
    ): OWN_DIALECT,
    ("draft2020-12", "vocabulary.json", "ignore unrecognized optional vocabulary"): OWN_DIALECT,
}


@dataclass(frozen=True)
class Group:
    """One schema of the suite, and the values that are asked of it."""

    dialect: str
    file: str
    description: str
    schema: Any
    tests: tuple[dict[str, Any], ...]

    @property
    def id(self) -> str:
        return f"{self.dialect}-{self.file.removesuffix('.json')}-{self.description}"

    @property
    def skipped(self) -> str | None:
        return SKIPPED.get((self.dialect, self.file, self.description)) or SKIPPED.get(
            (self.dialect, self.file, "*")
        )


def groups() -> Iterator[Group]:
    for dialect, address in DIALECTS.items():
        for path in sorted((SUITE / dialect).glob("*.json")):
            for group in json.loads(path.read_text(encoding="utf-8")):
                schema = group["schema"]
                if isinstance(schema, dict):  # a caller who means draft 7 says so
                    schema = {"$schema": address} | schema
                yield Group(dialect, path.name, group["description"], schema, tuple(group["tests"]))


GROUPS = tuple(groups())


@pytest.mark.parametrize("group", [pytest.param(group, id=group.id) for group in GROUPS if not group.skipped])
def test_the_suite_and_the_schema_say_the_same(group: Group) -> None:
    schema = Schemas().get(group.schema)
    assert not schema.broken
    for test in group.tests:
        assert schema.accepts(test["data"]) is test["valid"], test["description"]
        assert bool(list(schema.violations(test["data"]))) is not test["valid"], test["description"]
        assert bool(schema.explain(test["data"])) is not test["valid"], test["description"]


@pytest.mark.parametrize("group", [pytest.param(group, id=group.id) for group in GROUPS if group.skipped])
def test_what_is_skipped_is_refused_for_the_reason_that_is_listed(group: Group) -> None:
    assert group.skipped is not None
    assert group.skipped in Schemas().get(group.schema).broken


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_whole_suite_was_asked(dialect: str) -> None:
    asked = [len(group.tests) for group in GROUPS if group.dialect == dialect and not group.skipped]
    assert sum(asked) == JUDGED[dialect]


def test_every_skip_names_something_in_the_suite() -> None:
    known = {(group.dialect, group.file, name) for group in GROUPS for name in (group.description, "*")}
    assert SKIPPED.keys() <= known
