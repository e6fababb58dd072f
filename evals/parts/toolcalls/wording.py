"""The sentences of a night of tool calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evals.parts.toolcalls.blame import party_of
from evals.parts.toolcalls.prompts import Form, JudgedPrompt
from evals.parts.toolcalls.tools_in_prompt import ToolsInPrompt
from ringtrue.records import Check
from toolcall_validator.fault import CODES

_NAMED = 4  # codes that a sentence names


def listed(scored: Sequence[JudgedPrompt], check: Check, first: str | None = None) -> str:
    """Return the failed codes with their number of requests, forms and parties; ``first`` leads."""
    counts: Counter[str] = Counter()
    forms: dict[str, set[Form]] = {}
    for one in scored:
        for code, found in one.failed(check).items():
            counts[code] += 1
            forms.setdefault(code, set()).update(found)
    ordered = sorted(counts, key=lambda code: (code != first, -counts[code], CODES.index(code)))
    said = [f"{code} {counts[code]}{_only(code, forms[code])} ({party_of(scored, code)})" for code in ordered]
    rest = len(said) - _NAMED
    return ", ".join(said[:_NAMED]) + (f" and {rest} more codes" if rest > 0 else "")


def models_own(scored: Sequence[JudgedPrompt]) -> str:
    """Return the codes of which the raw text shows that the model wrote them so, empty for none."""
    own = Counter(code for one in scored for code in one.models_own())
    if not own:
        return ""
    codes = ", ".join(f"{code} {count}" for code, count in own.most_common(_NAMED))
    return f"the model's own by its raw text: {codes}"


def not_rendered(tools: ToolsInPrompt) -> str:
    """Say that the tools never reached the model, and by whose template."""
    if tools.own_template:
        return "the tools are not rendered: the prompt is as long without them"
    return "the tools are not rendered: the prompt is what the model's own template makes without them"


def counts_of(scored: Sequence[JudgedPrompt]) -> dict[str, Any]:
    """Return how many answers of each form, and pairs, have each code, whoever is at fault."""
    found: dict[str, Counter[str]] = {}
    for one in scored:
        for form, faults in one.faults.items():
            for code in dict.fromkeys(fault.code for fault in faults):
                found.setdefault(code, Counter())[form.value] += 1
        for fault in one.pair:
            found.setdefault(fault.code, Counter())["pairs"] += 1
    return {code: dict(found[code]) for code in CODES if code in found}


def _only(code: str, forms: set[Form]) -> str:
    if code == "stream.parity" or len(forms) > 1:
        return ""
    return f" {next(iter(forms))} only"
