from datetime import UTC, datetime, timedelta

import orjson
import pytest

from evals.tokens.counting import Counted
from evals.tokens.infer_report import infer_exit_code, to_json, to_markdown
from evals.tokens.inference import asks_for, infer
from evals.tokens.library import hypothesis, library
from ringtrue.errors import ModelError
from ringtrue.exit_codes import ExitCode
from ringtrue.records import Severity, State
from tests.unit.evals.tokens.small_format import small_format
from tests.unit.tokenizer_checks.templates.sources import CHATML, INST

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OWN = small_format()
ASKED = (
    *("text.base", "text.words", "text.digits", "base", "system", "system_empty", "turns"),
    *("thinking_off", "tool", "tools", "tool_called", "marker_0"),
)


def _held(*formats):
    return library(formats, [ask for ask in asks_for(formats) if ask.name in ASKED], NOW)


@pytest.fixture(scope="module")
def held():
    return _held(OWN)


def _inferred(counts, *, hidden=None, formats=(OWN,), now=NOW, unmeasured=None):
    return infer("acme", "m", Counted(counts, unmeasured or {}), formats, now=now, hidden=hidden)


def _names(found):
    return {fit.name for fit in found.consistency.fits}


def test_honest_counts_are_consistent_with_the_promised_model(held):
    found = _inferred(held["small"], hidden=0)

    assert "small" in _names(found)
    assert (found.finding.severity, infer_exit_code(found, NOW)) == (Severity.INFO, ExitCode.FINE)
    assert "consistent with: small" in found.finding.message


FAULTS = (
    "tools_dropped",
    "default_system_dropped",
    "system_dropped",
    "tool_json_html",
    "thinking_ignored",
    "words_cut",
)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hidden", [0, 17])
def test_a_fault_is_in_the_set_and_the_promised_model_is_not_whatever_is_hidden(held, fault, hidden):
    counts = {ask: count + hidden for ask, count in held[hypothesis("small", fault)].items()}

    found = _inferred(counts)

    assert hypothesis("small", fault) in _names(found)
    assert "small" not in _names(found)
    assert (found.verdicts(NOW)[0].verdict, infer_exit_code(found, NOW)) == (State.CHANGED, ExitCode.DRIFT)


def test_a_fault_of_every_prompt_shows_only_where_the_hidden_tokens_are_known(held):
    counts = held[hypothesis("small", "bos_doubled")]

    free, known = _inferred(counts), _inferred(counts, hidden=0)

    assert "small" in _names(free)
    assert "1 token more in every prompt" in free.finding.message
    assert "small" not in _names(known)
    assert hypothesis("small", "bos_doubled") in free.undetectable.constant


def test_another_models_counts_are_consistent_with_it_alone():
    other = small_format("{{ bos_token }}" + INST, name="other")
    both = _held(OWN, other)

    found = _inferred(both["other"], formats=(OWN, other))

    assert "other" in _names(found)
    assert not any(name.startswith("small") for name in _names(found))


def test_the_faults_that_no_count_shows_are_listed_and_those_that_look_alike_are_grouped(held):
    found = _inferred(held["small"])

    assert set(found.undetectable.equal) <= set(held)
    assert "small" not in found.undetectable.equal
    assert any("small" in group for group in found.alike) == bool(
        set(found.undetectable.equal) | set(found.undetectable.constant)
    )


def test_the_day_that_fits_is_found_on_both_sides_of_midnight():
    dated = small_format("{{ strftime_now('%A %d %B %Y') }}" + CHATML, name="dated")
    yesterday = NOW - timedelta(days=1)
    asks = [ask for ask in asks_for([dated]) if ask.name in ASKED]
    counts = library([dated], asks, yesterday)["dated"]

    found = _inferred(counts, formats=(dated,), hidden=0)

    assert counts != library([dated], asks, NOW)["dated"]  # Sunday is not as long as Monday
    assert "dated" in _names(found)


def test_too_few_counts_are_unmeasured(held):
    found = _inferred({"base": held["small"]["base"]}, unmeasured={"system": "429: slow down"})

    assert not found.finding.measured
    assert infer_exit_code(found, NOW) is ExitCode.UNMEASURED
    assert "Unmeasured: system: 429: slow down" in to_markdown(found)


def test_a_template_that_refuses_everything_says_so(held):
    refusing = small_format("{{ raise_exception('never') }}")

    with pytest.raises(ModelError, match="never"):
        _inferred(held["small"], formats=(refusing,))


def test_the_json_holds_counts_that_can_be_read_again(held):
    report = orjson.loads(to_json(_inferred(held["small"]), NOW))

    assert report["schema"] == 1
    assert report["counts"] == held["small"]
    assert report["verdicts"][0]["verdict"] == "OK"
    assert {"name": "small", "hidden": 0, "requests": len(held["small"])} in report["consistent"]


def test_markdown_tells_where_the_promised_model_is_wrong(held):
    text = to_markdown(_inferred(held[hypothesis("small", "tools_dropped")]))

    assert "the counts are not those of small" in text
    assert "| small | " in text
    assert "| small + tools_dropped | +0 |" in text
