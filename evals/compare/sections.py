"""What a comparison says to people: its tables, cell by cell, and the sentences around them."""

from __future__ import annotations

from dataclasses import dataclass

from evals.compare.measuring import Comparison
from evals.compare.verdict import BudgetVerdict
from logprob_drift.full_vocabulary.figure import Figure
from ringtrue.stats import clusters_needed

_WORDS = {"mean": "mean", "median": "median", "maximum": "maximum", "minimum": "minimum", "rms": "RMS"}


@dataclass(frozen=True, slots=True)
class Section:
    """One table: the heads of its columns, and rows of as many cells."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def preamble(found: Comparison) -> list[str]:
    """Return what was compared on, and what the intervals are."""
    statistics = found.statistics
    skipped = f", the first {found.skip:,} of each sequence left out" if found.skip else ""
    lines = [
        f"{statistics.sequences} sequences of {found.corpus}, {statistics.positions:,} positions{skipped}"
    ]
    needed = clusters_needed(statistics.level)
    if statistics.sequences < needed:
        lines.append(f"no intervals: they need {needed} sequences")
    else:
        lines.append(f"intervals at {100 * statistics.level:g} %, by bootstrap over sequences")
    return lines


def sections(found: Comparison) -> list[Section]:
    """Return the tables: the distributions of KL and delta p, the other statistics, loss by context."""
    statistics = found.statistics
    ppl = statistics.perplexity
    overall = [
        ("perplexity, candidate", ppl["candidate"]),
        ("perplexity, reference", ppl["reference"]),
        ("their ratio", ppl["ratio"]),
        ("their difference", ppl["difference"]),
        ("ln of their ratio", ppl["ln_ratio"]),
        ("correlation of logprobs, %", ppl["correlation"]),
        ("same top token, %", statistics.same_top),
        ("KL(Q || P), mean, nats", statistics.kl["reverse_mean"]),
        ("Jensen-Shannon, mean, nats", statistics.kl["js_mean"]),
    ]
    if found.floor is not None:
        overall += [
            (f"floor in {found.floor}, mean KL, nats", statistics.floor["mean"]),
            ("mean KL / floor", statistics.floor["ratio"]),
        ]
    return [
        Section(
            ("statistic", "KL(P || Q), nats", "interval", "delta p, %", "interval"),
            tuple(
                (_word(name), *_cells(statistics.kl.get(name)), *_cells(statistics.delta_p[name]))
                for name in statistics.delta_p
            ),
        ),
        Section(
            ("statistic", "value", "interval"), tuple((name, *_cells(figure)) for name, figure in overall)
        ),
        _context_section(found),
    ]


def _context_section(found: Comparison) -> Section:
    buckets = found.context.buckets
    heads: tuple[str, ...] = ("context, tokens", "sequences", "positions", "mean KL", "interval")
    rows = [(f"{b.first:,}-{b.last:,}", str(b.kl.n), f"{b.positions:,}", *_cells(b.kl)) for b in buckets]
    if found.floor is None:
        return Section(heads, tuple(rows))
    floors = [(_cells(b.floor)[0], *_cells(b.ratio)) for b in buckets]
    rows_with_floor = tuple((*row, *floor) for row, floor in zip(rows, floors, strict=True))
    return Section((*heads, "floor", "KL / floor", "interval"), rows_with_floor)


def conclusion(found: Comparison, verdict: BudgetVerdict | None) -> list[str]:
    """Return what follows from the tables: slopes, what is missing, and the verdict on a budget."""
    lines = [_slope_line("mean KL", found.context.slope)]
    if found.context.floor_slope is not None:
        lines.append(_slope_line("floor", found.context.floor_slope))
    if len(found.floor_draws) > 1:
        lines.append(f"floor by draw: {', '.join(f'{mean:.3g}' for mean in found.floor_draws)} nats")
    short = [b for b in found.context.buckets if b.kl.n < clusters_needed(found.statistics.level)]
    if short and found.statistics.sequences >= clusters_needed(found.statistics.level):
        which = ", ".join(f"{b.first:,}-{b.last:,}" for b in short)
        lines.append(f"too few sequences for an interval at {which} tokens")
    return lines if verdict is None else [*lines, verdict.reason]


def _slope_line(what: str, slope: Figure) -> str:
    if slope.value is None:
        return f"slope of log {what} against log context: none"
    _, interval = _cells(slope)
    return f"slope of log {what} against log context: {slope.value:+.2f}" + (
        f" ({interval})" if interval else ""
    )


def _word(name: str) -> str:
    return _WORDS.get(name) or f"{name.removeprefix('p')} %"


def _cells(figure: Figure | None) -> tuple[str, str]:
    """Return value and interval as printed; what does not exist is empty."""
    if figure is None or figure.value is None:
        return "", ""
    value = _number(figure.value, figure.unit)
    interval = figure.interval
    if interval is None:
        return value, ""
    low, high = (None if at is None else _number(at, figure.unit) for at in (interval.low, interval.high))
    if low is None or high is None:
        return (
            value,
            f"\N{LESS-THAN OR EQUAL TO} {high}" if low is None else f"\N{GREATER-THAN OR EQUAL TO} {low}",
        )
    return value, f"{low}..{high}"


def _number(value: float, unit: str) -> str:
    return f"{value:.3f}" if unit == "%" else f"{value:.4g}"
