import io
import json
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from evals.compare.measuring import Comparison
from evals.compare.report import render_comparison, to_json
from evals.compare.verdict import BudgetVerdict, judge_budget
from logprob_drift.full_vocabulary.context_loss import context_loss
from logprob_drift.full_vocabulary.kld_statistics import kld_statistics
from ringtrue.report import Format
from tests.unit.logprob_drift.positions import random_positions

FIGURE = {"value", "unit", "low", "high", "level", "n"}


def comparison(lengths: list[int], *, floor: bool = True) -> Comparison:
    rng = np.random.default_rng(3)
    found = random_positions(rng, lengths, spread=0.5)
    honest = found.kl / 100 if floor else None
    return Comparison(
        reference="smollm2-135m",
        candidate="smollm2-135m@int8+int4:layers=1,2",
        reference_fingerprint="a" * 64,
        candidate_fingerprint="b" * 64,
        corpus="a|b.txt",
        skip=0,
        seed=3,
        statistics=kld_statistics(found, rng, floor=honest),
        context=context_loss(found, rng, floor=honest),
        floor="bf16" if floor else None,
        floor_draws=(0.0011, 0.0012) if floor else (),
    )


def rendered(found: Comparison, form: Format, verdict: BudgetVerdict | None = None, width: int = 110) -> str:
    file = io.StringIO()
    render_comparison(found, verdict, form, Console(file=file, width=width))
    return file.getvalue()


def verdict_of(found: Comparison, budget: float) -> BudgetVerdict:
    return judge_budget(found.statistics.kl["mean"], budget, 7)


def test_the_table_fits_its_width_and_names_every_statistic() -> None:
    said = rendered(comparison([2_000] * 12), Format.TABLE)

    assert max(cell_len(line) for line in said.splitlines()) <= 110
    assert "…" not in said
    for words in (
        "smollm2-135m@int8+int4:layers=1,2 against smollm2-135m",
        "12 sequences of a|b.txt, 24,000 positions",
        "intervals at 98 %, by bootstrap over sequences",
        "99.9 %",
        "median",
        "RMS",
        "perplexity, candidate",
        "same top token, %",
        "floor in bf16",
        "1,024-2,047",
        "slope of log mean KL against log context: ",
        "floor by draw: 0.0011, 0.0012 nats",
    ):
        assert words in said


def test_markdown_holds_the_same_cells_as_the_table() -> None:
    found = comparison([300] * 12)
    table, markdown = rendered(found, Format.TABLE), rendered(found, Format.MARKDOWN)

    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    cells = [cell.strip().replace("\\|", "|") for row in rows for cell in row.replace("\\|", "\0").split("|")]
    cells = [cell.replace("\0", "|") for cell in cells if cell and "---" not in cell]
    assert len(cells) > 80
    assert all(cell in table for cell in cells)
    assert "KL(P \\|\\| Q), nats" in markdown


def test_json_is_one_object_whose_figures_all_carry_their_limits() -> None:
    body = json.loads(to_json(comparison([300] * 12), None))

    assert body["schema"] == 1
    assert body["reference"] == {"name": "smollm2-135m", "fingerprint": "a" * 64}
    assert (body["sequences"], body["positions"], body["level"]) == (12, 3_600, 0.98)
    groups: list[dict[str, Any]] = [body["perplexity"], body["kl"], body["delta_p"]]
    assert all(figure.keys() == FIGURE for group in groups for figure in group.values())
    assert body["kl"]["mean"]["low"] < body["kl"]["mean"]["value"] < body["kl"]["mean"]["high"]
    assert body["kl"]["mean"]["n"] == 12
    assert list(body["kl"])[:4] == ["mean", "maximum", "p99.9", "p99"]
    assert body["kl"]["maximum"]["low"] is None
    assert body["floor"]["dtype"] == "bf16"
    assert body["floor"]["ratio"]["value"] == pytest.approx(100)
    first = body["context"]["buckets"][0]
    assert (first["first"], first["last"], first["positions"]) == (1, 15, 180)
    assert first["kl"].keys() == first["floor"].keys() == first["ratio"].keys() == FIGURE
    assert body["budget"] is None


def test_without_a_floor_there_is_none_and_not_zero() -> None:
    found = comparison([300] * 12, floor=False)

    body = json.loads(to_json(found, None))
    assert body["floor"] is None
    assert body["context"]["floor_slope"] is None
    assert body["context"]["buckets"][0]["floor"] is None
    assert "floor" not in rendered(found, Format.TABLE)


def test_too_few_sequences_are_said_and_show_no_interval() -> None:
    said = rendered(comparison([300] * 3), Format.TABLE)

    assert "no intervals: they need 7 sequences" in said
    assert ".." not in said


def test_a_bucket_that_few_sequences_reach_is_said() -> None:
    said = rendered(comparison([60] * 8 + [300] * 2), Format.TABLE)

    assert "too few sequences for an interval at 64-127, 128-255, 256-511 tokens" in said


@pytest.mark.parametrize(("budget", "tag"), [(0.001, "failure"), (10.0, None)])
def test_junit_fails_beyond_the_budget(budget: float, tag: str | None) -> None:
    found = comparison([300] * 12)
    verdict = verdict_of(found, budget)

    suite = fromstring(rendered(found, Format.JUNIT, verdict))  # noqa: S314  # our own output

    case = suite.find("testcase")
    assert case is not None
    assert suite.attrib["failures"] == str(int(tag is not None))
    assert [child.tag for child in case] == ([tag] if tag else [])
    assert verdict.reason in rendered(found, Format.TABLE, verdict)
    assert json.loads(rendered(found, Format.JSON, verdict))["budget"]["outcome"] == verdict.outcome


def test_junit_has_an_error_where_nothing_can_be_said() -> None:
    found = comparison([300] * 3)

    suite = fromstring(rendered(found, Format.JUNIT, verdict_of(found, 0.02)))  # noqa: S314  # our own output

    assert suite.attrib["errors"] == "1"
    assert suite.find("testcase/error") is not None


def test_a_model_in_brackets_is_printed_as_it_is() -> None:
    found = comparison([300] * 8)
    object.__setattr__(found, "corpus", "[red]x[/red].txt")

    assert "[red]x[/red].txt" in rendered(found, Format.TABLE)
