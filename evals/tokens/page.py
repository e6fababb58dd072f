"""Every difference of a comparison as one HTML page."""

from __future__ import annotations

import html
from pathlib import Path

from evals.tokens.compared import Compared
from evals.tokens.outcome import Outcome
from ringtrue.errors import UsageError
from tokenizer_checks.side_by_side import as_table, html_page
from tokenizer_checks.vocabulary import Vocabulary


def write_page(found: Compared, path: Path) -> None:
    """Write one page that needs nothing else: each chat that differs, with both lists beside each other.

    It holds the text of prompts, so that only its owner may read it.

    Raises:
        UsageError: the file can't be written.
    """
    try:
        path.touch(mode=0o600)
        path.write_text(as_page(found), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(path)) from error


def as_page(found: Compared) -> str:
    """Return the page; every text in it is escaped."""
    said = "".join(f"<p>{html.escape(finding.message)}</p>\n" for finding in found.findings)
    parts = [_part(one, found.yardstick.vocabulary) for one in found.outcomes if one.difference is not None]
    return html_page(f"Token IDs of {found.endpoint} against {found.yardstick.own}", said + "\n".join(parts))


def _part(one: Outcome, vocabulary: Vocabulary) -> str:
    if one.difference is None:
        return ""
    sentence = one.blame.sentence if one.blame else ""
    head = f"<h2>{html.escape(one.name)}</h2>\n<p>{html.escape(sentence)}</p>\n"
    return head + as_table(one.difference, vocabulary)
