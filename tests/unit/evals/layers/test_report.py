"""The report by layer in each of its forms."""

import io
import json

import pytest
from rich.console import Console

from evals.layers.plot import draw_layers, require_writable
from evals.layers.report import render_layers, to_json, to_markdown
from reference_engine.layers.result import LayerDivergence, LayerRow, ModuleRow
from ringtrue.errors import UsageError
from ringtrue.report import PlainFormat

FOUND = LayerDivergence(
    reference="m",
    candidate="m@int4",
    layers=(
        LayerRow(0, 0.01, 0.01, 20.0, 0.999, 0.1),
        LayerRow(1, 0.0, 0.01, None, 1.0, 0.0),
        LayerRow(2, 0.06, 0.08, 12.5, 0.98, 0.2),
    ),
    outside=(ModuleRow(None, "head", 0.01),),
    modules=(ModuleRow(2, "mlp.down_proj", 0.05),),
    full_kl=0.1,
    control=0.0,
    sequences=2,
    positions=1024,
)


def _printed(form, found=FOUND, budget=0.02):
    console = Console(file=io.StringIO(), width=110)
    render_layers(found, budget, form, console)
    return console.file.getvalue()


def test_json_is_one_object_with_the_documented_fields():
    body = json.loads(to_json(FOUND, 0.02))
    assert body["schema"] == 1
    assert body["layers"][2] == {
        "layer": 2,
        "swap_kl": 0.06,
        "cum_kl": 0.08,
        "sqnr_db": 12.5,
        "cosine": 0.98,
        "error": 0.2,
    }
    assert body["layers"][1]["sqnr_db"] is None
    assert body["additivity"] == pytest.approx((0.01 + 0.06 + 0.01) / 0.1)
    assert (body["full_kl"], body["control"]) == (0.1, 0.0)
    assert body["budget"] == {"nats": 0.02, "first_layer": 2}


def test_the_table_marks_the_first_layer_beyond_the_budget_and_no_other():
    lines = _printed(PlainFormat.TABLE).splitlines()
    marked = [line for line in lines if "beyond 0.02 nats from here" in line]
    assert len(marked) == 1
    assert marked[0].split()[0] == "2"
    assert max(map(len, lines)) <= 110


def test_the_longest_bar_belongs_to_the_worst_layer():
    lines = _printed(PlainFormat.TABLE).splitlines()
    bars = {line.split()[0]: line.count("█") for line in lines[1:4]}
    assert bars["2"] > bars["0"] > bars["1"] == 0


def test_within_budget_the_summary_says_in_no_layer():
    assert "in no layer" in _printed(PlainFormat.TABLE, budget=1.0)


def test_markdown_holds_layers_and_modules():
    text = to_markdown(FOUND, 0.02)
    assert "| 2 | 0.06 | 0.08 | 12.5 | 0.98000 |" in text
    assert "| 2 | mlp.down_proj | 0.05 |" in text


def test_a_candidate_that_is_the_reference_has_nothing_to_share_out():
    rows = tuple(LayerRow(layer, 0.0, 0.0, None, 1.0, 0.0) for layer in range(2))
    equal = LayerDivergence("m", "m", rows, (), (), 0.0, 0.0, 1, 10)
    assert "nothing to share out" in _printed(PlainFormat.TABLE, equal)
    assert json.loads(to_json(equal, 0.02))["additivity"] is None


def test_the_picture_is_a_png_of_more_than_a_few_pixels(tmp_path):
    file = tmp_path / "layers.png"
    draw_layers(FOUND, 0.02, file)
    assert file.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert file.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["missing/layers.png", "layers.svg"])
def test_a_picture_that_cannot_be_written_is_refused_before_the_work(tmp_path, name):
    with pytest.raises(UsageError, match=name):
        require_writable(tmp_path / name)
