"""A difference of token IDs for people: both lists beside each other, on a terminal and as HTML."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tokenizer_checks.alignment import Run
from tokenizer_checks.difference import Difference
from tokenizer_checks.vocabulary import Vocabulary

CONTEXT = 3  # equal tokens shown on each side of a run
MOST = 24  # tokens of a run that are shown; of a longer one the first and the last half
WIDTH = 28  # characters of a token's text in the terminal's columns

_VISIBLE = {" ": "·", "\n": "⏎", "\r": "␍", "\t": "⇥"}
_STYLE = (
    "table{border-collapse:collapse;font:13px monospace}td{padding:1px 8px;white-space:pre}"
    ".i,.n{color:#777;text-align:right}.missing{background:#fdd}.added{background:#dfd}.skip{color:#777}"
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its index in its list, ID, and text with white space and control characters made visible."""

    index: int
    token_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens that stand beside each other, or ``skipped`` tokens of either list that are not shown."""

    expected: Token | None
    used: Token | None
    changed: bool
    skipped: tuple[int, int] = (0, 0)


def rows(found: Difference, vocabulary: Vocabulary) -> Iterator[Row]:
    """Yield every run with `CONTEXT` equal tokens around it; what is left out is counted in between.

    Tokens of a run stand beside each other by their order alone. A run of more
    than `MOST` tokens shows its first and its last half of that number.
    """
    at = used_at = 0
    for number, run in enumerate(found.runs):
        start = max(at, run.start - CONTEXT)
        yield from _skip(start - at, start - at)
        used_at += start - at
        yield from _equal(found, start, used_at, run.start, vocabulary)
        yield from _changed(found, run, vocabulary)
        following = found.runs[number + 1].start if number + 1 < len(found.runs) else len(found.expected)
        at = min(run.stop + CONTEXT, following)
        yield from _equal(found, run.stop, run.used_stop, at, vocabulary)
        used_at = run.used_stop + at - run.stop
    yield from _skip(len(found.expected) - at, len(found.used) - used_at)


def as_text(found: Difference, vocabulary: Vocabulary) -> str:
    """Return lines of two columns: what is expected on the left, what was used on the right.

    A line that differs begins with ``-`` (missing), ``+`` (added) or ``!``
    (replaced). No control character of a token reaches the terminal.
    """
    lines = [f"  {'expected':<{WIDTH + 16}}   used"]
    for row in rows(found, vocabulary):
        if row.expected is None and row.used is None:
            lines.append(f"  … {_skipped(row)}")
            continue
        left, right = _column(row.expected), _column(row.used)
        lines.append(f"{_sign(row)} {left:<{WIDTH + 16}} | {right}".rstrip())
    return "\n".join(lines)


def as_html(found: Difference, vocabulary: Vocabulary, title: str) -> str:
    """Return one page that needs nothing else; every text in it is escaped."""
    return html_page(title, as_table(found, vocabulary))


def html_page(title: str, body: str) -> str:
    """Return a page around ``body``, which is HTML, that needs nothing else; ``title`` is text."""
    head = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{head}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{head}</h1>\n{body}\n</body></html>\n"
    )


def as_table(found: Difference, vocabulary: Vocabulary) -> str:
    """Return the two columns as one HTML table; every text in it is escaped."""
    body = "\n".join(_html_row(row) for row in rows(found, vocabulary))
    heads = '<tr><th colspan="3">expected</th><th colspan="3">used</th></tr>'
    return f"<table>\n{heads}\n{body}\n</table>"


def _skip(expected: int, used: int) -> Iterator[Row]:
    if expected or used:
        yield Row(None, None, changed=False, skipped=(expected, used))


def _equal(
    found: Difference, start: int, used_start: int, stop: int, vocabulary: Vocabulary
) -> Iterator[Row]:
    for offset in range(stop - start):
        yield Row(
            _token(found.expected, start + offset, vocabulary),
            _token(found.used, used_start + offset, vocabulary),
            changed=False,
        )


def _changed(found: Difference, run: Run, vocabulary: Vocabulary) -> Iterator[Row]:
    mine, hidden = _shown(run.start, run.stop)
    theirs, used_hidden = _shown(run.used_start, run.used_stop)
    pairs = list(zip_longest(mine, theirs))
    for number, (index, used_index) in enumerate(pairs):
        if number == MOST // 2:
            yield from _skip(hidden, used_hidden)
        yield Row(
            None if index is None else _token(found.expected, index, vocabulary),
            None if used_index is None else _token(found.used, used_index, vocabulary),
            changed=True,
        )


def _shown(start: int, stop: int) -> tuple[Sequence[int], int]:
    """Return the indices of a run that are shown, and how many are not."""
    if stop - start <= MOST:
        return range(start, stop), 0
    half = MOST // 2
    return [*range(start, start + half), *range(stop - half, stop)], stop - start - 2 * half


def _token(ids: Sequence[int], index: int, vocabulary: Vocabulary) -> Token:
    return Token(index, ids[index], visible(vocabulary.text_of(ids, index, index + 1)))


def visible(text: str) -> str:
    """Return text with spaces, line breaks and characters that have no shape made visible."""
    return "".join(_VISIBLE.get(char) or _shape(char) for char in text)


def printable(text: str) -> str:
    """Return text on one line, with all that a terminal would obey made visible; spaces stay."""
    return "".join(char if char == " " else visible(char) for char in text)


def _shape(char: str) -> str:
    # Controls, formats (right-to-left marks, joiners), surrogates, private use, unassigned; other separators.
    return f"\\u{ord(char):04x}" if unicodedata.category(char)[0] in "CZ" else char


def _sign(row: Row) -> str:
    if not row.changed:
        return " "
    if row.used is None:
        return "-"
    return "+" if row.expected is None else "!"


def _column(token: Token | None) -> str:
    if token is None:
        return ""
    text = token.text if len(token.text) <= WIDTH else token.text[: WIDTH - 1] + "…"
    return f"{token.index:>6} {token.token_id:>7} {text}"


def _skipped(row: Row) -> str:
    expected, used = row.skipped
    if expected == used:
        return f"{expected:,} tokens"
    return f"{expected:,} expected and {used:,} used tokens"


def _html_row(row: Row) -> str:
    if row.expected is None and row.used is None:
        return f'<tr><td class="skip" colspan="6">… {_skipped(row)}</td></tr>'
    return (
        f"<tr>{_cells(row.expected, 'missing' * row.changed)}{_cells(row.used, 'added' * row.changed)}</tr>"
    )


def _cells(token: Token | None, kind: str) -> str:
    if token is None:
        return '<td colspan="3"></td>'
    text = html.escape(token.text)
    return (
        f'<td class="i">{token.index}</td><td class="n">{token.token_id}</td><td class="{kind}">{text}</td>'
    )
