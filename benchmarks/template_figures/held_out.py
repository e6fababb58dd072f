"""Pairs of templates that no rule was tuned on (held_out_templates*.toml), and what is said of them."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from ringtrue.errors import ModelError
from tokenizer_checks.blame import Layer, blame
from tokenizer_checks.difference import Difference, difference
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.fixtures import Fixture
from tokenizer_checks.templates.model import ModelPrompts

_FOLDER = Path(__file__).parent.parent
FILES = {1: _FOLDER / "held_out_templates.toml", 2: _FOLDER / "held_out_templates_second.toml"}


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of the published template and what stands in its place, once or everywhere."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """A published template, what a server used in its place, and the layer to blame.

    ``number`` is that of the set it belongs to. ``layers`` are fixtures with
    another right layer, ``left_out`` those in which two layers change at once.
    ``apart`` cuts the text before it is tokenized, ``unknown`` are markers
    tokenized as text.
    """

    number: int
    name: str
    template: str
    sha256: str
    kind: str
    change: str
    layer: Layer
    source: str | None
    edits: tuple[Edit, ...]
    layers: Mapping[str, Layer]
    left_out: frozenset[str]
    apart: str | None
    unknown: tuple[str, ...]

    def edited(self, published: str) -> str:
        """Return what the server used.

        Raises:
            ValueError: this is not the published file, or an edit does not fit it.
        """
        if hashlib.sha256(published.encode()).hexdigest() != self.sha256:
            raise ValueError(f"{self.name}: {self.template} is not the file that the pair was written for")
        text = published
        for edit in self.edits:
            times = text.count(edit.old)
            if times == 0 or (times > 1 and not edit.everywhere):
                raise ValueError(f"{self.name}: {edit.old!r} stands {times} times in the template")
            text = text.replace(edit.old, edit.new)
        return text

    def ids(self, text: str, prompts: ModelPrompts) -> tuple[int, ...]:
        """Return the IDs that the server would make of a prompt's text."""
        ids: list[int] = []
        for piece in pieces(self, text):
            ids += prompts.encode(piece, parse_special=piece not in self.unknown)
        return tuple(ids)


def pieces(pair: Pair, text: str) -> list[str]:
    """Return what the server tokenizes apart: the whole text, as long as the pair says nothing else."""
    markers = "|".join(map(re.escape, pair.unknown))
    joints = f"({markers})" if markers else pair.apart
    return [text] if joints is None else [piece for piece in re.split(joints, text) if piece]


def held_out_pairs(files: Mapping[int, Path] = FILES) -> tuple[Pair, ...]:
    """Return the pairs of all sets, in the order of the files; names are unique."""
    pairs: list[Pair] = []
    for number, file in files.items():
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        pairs += (_pair(number, row, data["sha256"]) for row in data["pair"])
    return tuple(pairs)


def _pair(number: int, row: Mapping[str, Any], hashes: Mapping[str, str]) -> Pair:
    edits = (Edit(edit["from"], edit["to"], edit.get("all", False)) for edit in row.get("edits", ()))
    return Pair(
        number=number,
        name=row["name"],
        template=row["template"].removesuffix(".jinja"),
        sha256=hashes[row["template"]],
        kind=row["kind"],
        change=row["change"],
        layer=Layer(row["layer"]),
        source=row.get("source"),
        edits=tuple(edits),
        layers={name: Layer(layer) for name, layer in row.get("layers", {}).items()},
        left_out=frozenset(row.get("left_out", ())),
        apart=row.get("apart"),
        unknown=tuple(row.get("unknown", ())),
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """One fixture of a pair: the layer that is right and the one that was blamed."""

    fixture: str
    right: Layer
    blamed: Layer


def changes(
    pair: Pair, prompts: ModelPrompts, chats: Sequence[Fixture], now: datetime
) -> Iterator[tuple[str, Difference]]:
    """Yield the fixtures whose IDs the pair changes, and how; refused ones are left out."""
    renderer, edited = Renderer(), cache(pair.edited)
    for fixture in chats:
        if fixture.name in pair.left_out:
            continue
        try:
            prompt = prompts.prompt(fixture.chat, now)
            server = replace(prompt, template=edited(prompt.template), name=pair.name)
            used = pair.ids(renderer.render(server), prompts)
            expected = prompts.expected(fixture.chat, now, used)
        except ModelError:
            continue
        found = difference(expected, used, prompts.vocabulary)
        if found is not None:
            yield fixture.name, found


def judged(pair: Pair, prompts: ModelPrompts, chats: Sequence[Fixture], now: datetime) -> Iterator[Judged]:
    """Yield what is blamed in each of ``changes``, beside what is right."""
    for name, found in changes(pair, prompts, chats, now):
        yield Judged(name, pair.layers.get(name, pair.layer), blame(found, prompts.vocabulary).layer)
