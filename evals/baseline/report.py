"""Baselines on paper: tables for people, JSON for programs, Markdown for tickets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from reference_engine.baselines.store import BaselineStore, StoredBaseline
from ringtrue.errors import StoreError
from ringtrue.report import SCHEMA, PlainFormat, counted, markdown_table

SHORT = 12
"""Digits of an id that are shown."""


_HEADS = ("id", "model", "dtype", "source", "sequences", "tokens", "k", "states", "size")


def render_list(
    store: BaselineStore, found: Sequence[StoredBaseline | StoreError], form: PlainFormat, console: Console
) -> None:
    """Write one line a baseline, then what cannot be read."""
    whole = [baseline for baseline in found if isinstance(baseline, StoredBaseline)]
    broken = [str(error) for error in found if isinstance(error, StoreError)]
    if form is PlainFormat.JSON:
        rows = [summary(baseline) for baseline in whole]
        write_json({"store": str(store.root), "baselines": rows, "unreadable": broken}, console)
        return
    write_rows(_HEADS, [_cells(baseline) for baseline in whole], form, console)
    if not found:
        console.print(f"No baselines in {store.root}.", markup=False, highlight=False)
    for line in broken:
        console.print(line, markup=False, highlight=False)


def render_built(stored: StoredBaseline, form: PlainFormat, console: Console, *, new: bool) -> None:
    """Write what was built, or found built already."""
    if form is PlainFormat.JSON:
        write_json({"built": new, "baseline": summary(stored)}, console)
        return
    write_rows(_HEADS, [_cells(stored)], form, console)
    console.print(
        f"{'built' if new else 'it was there already'}: {stored.folder}", markup=False, highlight=False
    )


def render_manifest(stored: StoredBaseline, form: PlainFormat, console: Console) -> None:
    """Write everything that is known of one baseline."""
    if form is PlainFormat.JSON:
        body = {"id": stored.id, "folder": str(stored.folder), **asdict(stored.manifest)}
        write_json(body, console)
        return
    rows = [("id", stored.id), ("folder", str(stored.folder)), *_facts(stored)]
    write_rows(("fact", "value"), rows, form, console)


def summary(stored: StoredBaseline) -> dict[str, Any]:
    """Return the facts of a list, by their names; ``size`` in bytes."""
    manifest, request = stored.manifest, stored.manifest.request
    return {
        "id": stored.id,
        "model": request.model.name,
        "dtype": request.model.dtype,
        "source": request.source.get("kind"),
        "sequences": request.corpus.sequences,
        "tokens": request.corpus.tokens,
        "k": request.k,
        "states": request.states,
        "size": manifest.bytes,
    }


def write_json(body: dict[str, Any], console: Console) -> None:
    """Write one object with its schema version."""
    text = orjson.dumps({"schema": SCHEMA, **body}, option=orjson.OPT_INDENT_2).decode()
    console.file.write(f"{text}\n")


def write_rows(
    heads: Sequence[str], rows: Sequence[Sequence[str]], form: PlainFormat, console: Console
) -> None:
    """Write a table for a terminal, or in Markdown; none where there are no rows."""
    if not rows:
        return
    if form is PlainFormat.MARKDOWN:
        console.file.write(f"{markdown_table(heads, rows)}\n")
        return
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table, markup=False, highlight=False)


def in_bytes(count: int) -> str:
    """Return a number of bytes as people read it."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"


def _cells(stored: StoredBaseline) -> list[str]:
    facts = summary(stored)
    shown = {
        **facts,
        "id": stored.id[:SHORT],
        "sequences": f"{facts['sequences']:,}",
        "tokens": f"{facts['tokens']:,}",
        "k": f"{facts['k']:,}",
        "states": facts["states"] or "none",
        "size": in_bytes(facts["size"]),
    }
    return [str(shown[head]) for head in _HEADS]


def _facts(stored: StoredBaseline) -> list[tuple[str, str]]:
    manifest, request = stored.manifest, stored.manifest.request
    model, environment = request.model, request.environment
    return [
        ("model", model.name),
        ("fingerprint", model.fingerprint),
        ("weights", model.weights),
        ("tokenizer", model.tokenizer),
        ("template", model.template or "none"),
        ("dtype", model.dtype),
        ("vocabulary", f"{model.vocabulary_size:,}"),
        ("hidden size", f"{model.hidden_size:,}"),
        ("context", f"{model.context_length:,}"),
        ("corpus", request.corpus.digest),
        ("sequences", f"{request.corpus.sequences:,}"),
        ("tokens", f"{request.corpus.tokens:,}"),
        ("k", f"{request.k:,}"),
        ("states", request.states or "none"),
        ("device", environment.device),
        ("processor", f"{environment.processor}, {counted(environment.threads, 'thread')}"),
        ("versions", ", ".join(f"{name} {found}" for name, found in sorted(environment.versions.items()))),
        *((f"source, {name}", str(value)) for name, value in sorted(request.source.items())),
        *((f"evidence, {name}", str(value)) for name, value in sorted(manifest.evidence.items())),
        ("shards", f"{len(manifest.shards):,}"),
        ("rows", f"{manifest.rows:,}"),
        ("size", in_bytes(manifest.bytes)),
    ]
