"""What counts are consistent with, on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evals.tokens.inference import Inferred
from ringtrue.exit_codes import ExitCode, exit_code
from ringtrue.records import DRIFT
from ringtrue.report import SCHEMA, Format, markdown_table, to_junit
from tokenizer_checks.side_by_side import printable

NEAREST = 5  # hypotheses that do not fit, of which the report tells where they don't

_FITS = ("consistent with", "tokens hidden in every prompt", "requests")
_MISFITS = ("not consistent with", "wrong in", "for example")


def render_inferred(found: Inferred, at: datetime, form: Format, console: Console) -> None:
    """Write the report to the console and nothing else, so that it can be piped."""
    match form:
        case Format.TABLE:
            _print(found, at, console)
        case Format.JSON:
            console.file.write(f"{to_json(found, at)}\n")
        case Format.MARKDOWN:
            console.file.write(f"{to_markdown(found)}\n")
        case Format.JUNIT:
            console.file.write(f"{to_junit(found.verdicts(at))}\n")


def infer_exit_code(found: Inferred, at: datetime) -> ExitCode:
    """Return DRIFT for counts that are not the promised model's, UNMEASURED for too few, else FINE."""
    return exit_code(found.verdicts(at))


def to_json(found: Inferred, at: datetime) -> str:
    """Return one object with schema 1; its ``counts`` can be read again with ``--counts``."""
    body = {
        "schema": SCHEMA,
        "endpoint": found.endpoint,
        "model": found.model,
        "promised": found.promised,
        "hidden": found.hidden,
        "verdicts": [asdict(verdict) for verdict in found.verdicts(at)],
        "counts": found.counted.counts,
        "unmeasured": found.counted.unmeasured,
        "hypotheses": found.hypotheses,
        "consistent": [asdict(fit) for fit in found.consistency.fits],
        "inconsistent": [asdict(misfit) for misfit in found.consistency.misfits],
        "unheld": found.consistency.unheld,
        "alike": found.alike,
        "undetectable": asdict(found.undetectable),
    }
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode()


def to_markdown(found: Inferred) -> str:
    """Return the sentence, the consistent set, the nearest others, and what counts can't show."""
    parts = [found.finding.message]
    if found.consistency.fits:
        parts.append(markdown_table(_FITS, _fits(found)))
    if found.consistency.misfits:
        parts.append(markdown_table(_MISFITS, _misfits(found)))
    return "\n\n".join([*parts, "\n".join(f"- {line}" for line in _notes(found))])


def _print(found: Inferred, at: datetime, console: Console) -> None:
    for heads, rows in ((_FITS, _fits(found)), (_MISFITS, _misfits(found))):
        if rows:
            console.print(_table(heads, rows))
            console.print()
    for line in _notes(found):
        console.print(Text(printable(line)), soft_wrap=True)
    for verdict in found.verdicts(at):
        colour = "yellow" if verdict.verdict in DRIFT else "default"
        console.print(
            Text(f"{verdict.check}: {verdict.verdict}: ", colour) + Text(verdict.reason), soft_wrap=True
        )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _fits(found: Inferred) -> list[tuple[str, ...]]:
    return [(fit.name, f"{fit.hidden:+,}", str(fit.requests)) for fit in found.consistency.fits]


def _misfits(found: Inferred) -> list[tuple[str, ...]]:
    """Return the promised model first, if it does not fit, and then the nearest others."""
    all_of_them = found.consistency.misfits
    promised = [one for one in all_of_them if one.name == found.promised]
    others = [one for one in all_of_them if one.name != found.promised][:NEAREST]
    rows: list[tuple[str, ...]] = []
    for one in (*promised, *others):
        examples = ", ".join(f"{ask} by {by:+,}" for ask, by in list(one.wrong.items())[:3])
        rows.append((one.name, f"{len(one.wrong)} requests", examples))
    return rows


def _notes(found: Inferred) -> list[str]:
    lines = [
        f"Held against {found.hypotheses:,} templates and faults. Counts can be forged, and some servers "
        "count only what their cache had not: consistent is all that can be said."
    ]
    lines += [f"The same in all these requests: {', '.join(group)}" for group in found.alike]
    if found.undetectable.equal:
        lines.append(f"No count shows: {', '.join(sorted(found.undetectable.equal))}")
    if found.undetectable.constant and found.hidden is None:
        named = (f"{name} ({by:+,})" for name, by in sorted(found.undetectable.constant.items()))
        lines.append(f"Shown only where --hidden is known: {', '.join(named)}")
    lines += [f"Unmeasured: {name}: {why}" for name, why in found.counted.unmeasured.items()]
    return lines
