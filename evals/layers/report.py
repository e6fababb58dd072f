"""Divergence by layer on paper: a table for people, JSON for programs, Markdown for tickets."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reference_engine.layers.result import LayerDivergence, LayerRow
from ringtrue.report import SCHEMA, PlainFormat, counted, markdown_table

_BAR = 24  # cells of the longest bar
_HEADS = ("layer", "swap KL", "cum KL", "SQNR dB", "cosine")
_MODULE_HEADS = ("layer", "module", "swap KL")


def render_layers(found: LayerDivergence, budget: float, form: PlainFormat, console: Console) -> None:
    """Write the report to the console and nothing else, so that it can be piped."""
    match form:
        case PlainFormat.TABLE:
            _print_tables(found, budget, console)
        case PlainFormat.JSON:
            console.file.write(f"{to_json(found, budget)}\n")
        case PlainFormat.MARKDOWN:
            console.file.write(f"{to_markdown(found, budget)}\n")


def to_json(found: LayerDivergence, budget: float) -> str:
    """Return one object with schema 1; divergences in nats, null where something does not exist."""
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "reference": found.reference,
        "candidate": found.candidate,
        "sequences": found.sequences,
        "positions": found.positions,
        "layers": [asdict(row) for row in found.layers],
        "outside": [{"module": row.module, "swap_kl": row.swap_kl} for row in found.outside],
        "modules": [asdict(row) for row in found.modules],
        "full_kl": found.full_kl,
        "additivity": found.additivity,
        "control": found.control,
        "budget": {"nats": budget, "first_layer": found.beyond(budget)},
    }
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def to_markdown(found: LayerDivergence, budget: float) -> str:
    """Return a summary and GitHub-flavoured tables."""
    tables = [markdown_table(_HEADS, [_cells(row) for row in found.layers])]
    if found.outside or found.modules:
        tables.append(markdown_table(_MODULE_HEADS, _module_cells(found)))
    return "\n\n".join([" ".join(_summary(found, budget)), *tables])


def _print_tables(found: LayerDivergence, budget: float, console: Console) -> None:
    largest = max(row.swap_kl for row in found.layers)
    first = found.beyond(budget)
    table = Table(box=None, pad_edge=False)
    for head in (_HEADS[0], _HEADS[1]):
        table.add_column(head, justify="right")
    table.add_column("", min_width=_BAR)
    for head in _HEADS[2:]:
        table.add_column(head, justify="right")
    table.add_column("")
    for row in found.layers:
        number, swap, *rest = _cells(row)
        mark = Text(f"< beyond {budget:g} nats from here", "bold red") if row.layer == first else Text()
        table.add_row(number, swap, Text(_bar(row.swap_kl, largest), "cyan"), *rest, mark)
    console.print(table)
    if found.outside or found.modules:
        inside = Table(box=None, pad_edge=False)
        for head in _MODULE_HEADS:
            inside.add_column(head, justify="left" if head == "module" else "right")
        for cells in _module_cells(found):
            inside.add_row(*cells)
        console.print()
        console.print(inside)
    console.print()
    for line in _summary(found, budget):
        console.print(line, highlight=False)


def _summary(found: LayerDivergence, budget: float) -> list[str]:
    first = found.beyond(budget)
    place = "in no layer" if first is None else f"from layer {first} on"
    additivity = (
        "nothing to share out"
        if found.additivity is None
        else f"the swaps sum to {found.additivity:.2f} of it"
    )
    return [
        f"{found.candidate} against {found.reference}: {found.full_kl:.4g} nats, {additivity}.",
        f"Over {counted(found.positions, 'position')} in {counted(found.sequences, 'sequence')}; "
        f"without a swap the divergence is {found.control:g}.",
        f"The cumulative KL is beyond {budget:g} nats {place}.",
    ]


def _cells(row: LayerRow) -> tuple[str, ...]:
    quality = "equal" if row.sqnr_db is None else f"{row.sqnr_db:.1f}"
    return (str(row.layer), _nats(row.swap_kl), _nats(row.cum_kl), quality, f"{row.cosine:.5f}")


def _module_cells(found: LayerDivergence) -> list[tuple[str, ...]]:
    return [
        ("" if row.layer is None else str(row.layer), row.module, _nats(row.swap_kl))
        for row in (*found.outside, *found.modules)
    ]


def _nats(value: float) -> str:
    return f"{value:.3g}"


def _bar(value: float, largest: float) -> str:
    return "█" * round(_BAR * value / largest) if largest > 0 else ""
