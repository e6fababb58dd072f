"""The command ``replay`` over recordings with a change, and over all that isn't one."""

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from ringtrue.cli import COMMANDS, run
from tests.unit.evals.replay.recordings import logprobs, texts, times, values, write


@pytest.fixture
def replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Return what a replay of records answers: its exit code, its JSON, and stderr."""

    def replay(*series, options: tuple[str, ...] = ()):
        path = write(tmp_path / "recorded.jsonl", *series)
        code = run(COMMANDS, ["replay", str(path), "--format", "json", *options])
        out = capsys.readouterr()
        return code, json.loads(out.out) if out.out else None, out.err

    return replay


def test_a_changed_endpoint_alarms_with_the_batch_of_the_change_and_an_honest_one_does_not(replayed) -> None:
    code, found, _ = replayed(logprobs("honest", seed=1), logprobs("faulty", change=25))

    assert code == 1
    assert found["schema"] == 1
    [alarm] = found["alarms"]
    assert list(alarm) == ["endpoint", "detector", "t", "batch", "requests", "e_value", "since", "evidence"]
    assert (alarm["endpoint"], alarm["detector"], alarm["since"]) == ("faulty", "distance", "2026-01-26")
    assert alarm["batch"] == "2026-01-27"
    assert alarm["requests"] == 20
    assert alarm["t"] == "2026-01-27T03:00:09+00:00"
    assert alarm["e_value"] >= found["budget"]["threshold"] == 730
    assert alarm["evidence"]["mean_after"] > 3 * alarm["evidence"]["mean_before"]


def test_an_honest_recording_is_quiet_and_says_what_it_could_have_seen(replayed) -> None:
    code, found, _ = replayed(logprobs(), texts(), values())

    assert code == 0
    assert found["alarms"] == []
    quiet = {(one["detector"], one["series"]): one for one in found["quiet"]}
    assert {name for name, _ in quiet} >= {"distance", "length", "samples", "value"}
    assert 0 < quiet["distance", "k=20"]["detectable"] < 0.05
    assert all(one["e_value"] < found["budget"]["threshold"] for one in found["quiet"])


def test_a_shifted_value_alarms_and_names_its_metric(replayed) -> None:
    code, found, _ = replayed(values(change=25, shift=0.6), values(metric="other", seed=8))

    assert code == 1
    [alarm] = found["alarms"]
    assert alarm["evidence"]["series"] == "seconds"
    assert alarm["evidence"]["mean_after"] - alarm["evidence"]["mean_before"] == pytest.approx(0.6, abs=0.1)


def test_other_words_are_seen_by_the_samples_and_longer_answers_by_their_length(replayed) -> None:
    _, words, _ = replayed(texts(change=25, words="abce"))
    _, longer, _ = replayed(texts(change=25, longer=2.0))

    assert {alarm["detector"] for alarm in words["alarms"]} == {"samples"}
    assert "length" in {alarm["detector"] for alarm in longer["alarms"]}


def test_a_metric_of_zeros_and_ones_is_watched_as_a_rate(replayed) -> None:
    def valid(endpoint: str, change: int):
        generator = np.random.default_rng(11)
        for night in range(50):
            for t in times(night, 60):
                value = float(generator.random() > (0.15 if night >= change else 0.01))
                yield {"endpoint": endpoint, "t": t, "metric": "valid", "value": value}

    code, found, _ = replayed(valid("honest", 99), valid("faulty", 30))

    assert code == 1
    [alarm] = found["alarms"]
    assert (alarm["endpoint"], alarm["detector"]) == ("faulty", "rates")
    assert alarm["evidence"]["rate_before"] == pytest.approx(0.99, abs=0.01)
    assert alarm["evidence"]["rate_after"] < 0.9
    assert alarm["since"] in {"2026-01-30", "2026-01-31", "2026-02-01"}
    [honest] = [one for one in found["quiet"] if one["endpoint"] == "honest"]
    assert 0 < honest["detectable"] < 0.1


def test_answers_that_begin_to_loop_alarm(replayed) -> None:
    _, found, _ = replayed(texts(change=25, ending="!" * 500), options=("--detector", "rates"))

    assert [alarm["evidence"]["series"] for alarm in found["alarms"]] == ["looping answers"]


def test_a_new_numeric_state_is_a_notice_and_no_alarm(replayed) -> None:
    code, found, _ = replayed(
        logprobs(noise=0.0, nights=range(30)), logprobs(noise=0.0, nights=range(30, 40), seed=9)
    )

    [notice] = found["notices"]
    assert notice["detector"] == "census"
    assert notice["since"] == "2026-01-31"
    assert notice["evidence"]["requests_since_change"] <= 5
    assert {alarm["detector"] for alarm in found["alarms"]} == {"distance"}
    assert code == 1


def test_the_budget_is_shared_by_as_many_streams_as_are_said_and_by_hourly_batches(replayed) -> None:
    _, fleet, _ = replayed(values(), options=("--streams", "200"))
    _, twice, _ = replayed(values(), options=("--streams", "200", "--false-alarms-per-year", "2"))
    hourly = (
        {"endpoint": "a", "t": 3600 * at + 7, "batch": at, "value": 1 + (at % 7) / 10} for at in range(100)
    )
    _, hours, _ = replayed(hourly)

    assert fleet["budget"]["threshold"] == 73_000
    assert twice["budget"]["threshold"] == 36_500
    assert hours["budget"]["batches_per_year"] == pytest.approx(8760)


def test_a_budget_that_asks_for_no_evidence_is_refused(replayed) -> None:
    code, found, said = replayed(values(), options=("--false-alarms-per-year", "1000"))

    assert (code, found) == (2, None)
    assert "--false-alarms-per-year: 1000 false alarms a year are more than" in said


def test_a_metric_with_negative_values_has_no_log_scale_but_others_do(replayed) -> None:
    below = [record | {"value": float(record["value"]) - 1} for record in values(metric="below")]
    _, found, _ = replayed(values(), below, options=("--log", "seconds", "--log", "below"))

    assert [one["series"] for one in found["quiet"]] == ["seconds"]
    assert [one["series"] for one in found["unknown"]] == ["below"]
    assert "negative" in found["unknown"][0]["reason"]


@pytest.mark.parametrize("scale", [1e29, 1e-29, -1e29])
def test_values_of_any_size_are_judged(replayed, scale: float) -> None:
    scaled = [record | {"value": float(record["value"]) * scale} for record in values(change=25, shift=0.6)]

    assert replayed(scaled)[0] == 1


def test_only_the_detectors_that_were_asked_for_run(replayed) -> None:
    _, found, _ = replayed(texts(), options=("--detector", "length"))

    assert found["detectors"] == ["length"]
    code, found, said = replayed(texts(), options=("--detector", "tea leaves"))
    assert (code, found) == (2, None)
    assert "no detector is called tea leaves" in said


def test_one_night_is_unknown_and_so_is_everything_before_the_baseline(replayed) -> None:
    code, found, _ = replayed(logprobs(nights=range(1)), texts(nights=range(1)), values(nights=range(1)))

    assert code == 3
    assert found["alarms"] == found["quiet"] == []
    reasons = {one["detector"]: one["reason"] for one in found["unknown"]}
    assert "1 of 15 nights measured" in reasons["value"]
    assert set(reasons) >= {"distance", "census", "length", "samples", "value"}
    assert replayed(values(nights=range(14)))[0] == 3
    assert replayed(values(nights=range(15)))[0] == 0


def test_missing_nights_are_skipped_and_named(replayed) -> None:
    nights = [night for night in range(50) if night not in {9, 20, 21, 33}]
    code, found, _ = replayed(logprobs(nights=nights), texts(nights=nights), values(nights=nights))

    assert code == 0
    assert any("missing in 3 places" in note for note in found["notes"])


def test_a_clock_that_runs_backwards_is_named_and_no_alarm(replayed) -> None:
    nights = [*range(30), *range(15, 40)]
    code, found, _ = replayed(logprobs(nights=nights), texts(nights=nights), values(nights=nights))

    assert code == 0
    assert any("the clock ran backwards (4 times" in note for note in found["notes"])


def test_a_renamed_endpoint_stays_two_and_is_said_to_be_maybe_one(replayed) -> None:
    _, found, _ = replayed(values("old", range(20)), values("new", range(20, 30), shift=3.0, change=0))

    assert found["alarms"] == []
    assert any("new begins after old ends" in note for note in found["notes"])
    assert [one["endpoint"] for one in found["unknown"]] == ["new"]


def test_a_provider_that_changes_k_begins_anew_and_no_alarm(replayed) -> None:
    code, found, _ = replayed(logprobs(nights=range(25)), logprobs(nights=range(25, 35), k=5))

    assert code == 0
    assert any("k changed from 20 to 5 at batch 2026-01-26" in note for note in found["notes"])
    assert any(one["series"] == "k=5" for one in found["unknown"])


def test_rows_with_the_sampled_token_appended_are_left_out_and_counted(replayed) -> None:
    records = list(logprobs())
    for record in records[::3]:
        record["top_logprobs"] = [*record["top_logprobs"], ["sampled", -11.0]]

    code, found, _ = replayed(records)

    assert code == 0
    assert any("134 rows are left out" in note for note in found["notes"])


def test_repeated_lines_count_once(replayed) -> None:
    records = [*logprobs(), *texts(), *values()]

    once, twice = replayed(records), replayed(chain.from_iterable(zip(records, records, strict=True)))

    assert twice[0] == 0
    assert twice[1]["lines"] == {"used": len(records), "bad": 0, "repeated": len(records)}
    assert twice[1]["quiet"] == once[1]["quiet"]


def test_equal_lines_of_a_batch_with_one_time_are_requests_of_their_own(replayed) -> None:
    night = [
        {"endpoint": "a", "t": next(times(at)), "value": value} for at in range(20) for value in (1.5, 1.5, 2)
    ]

    assert replayed(night)[1]["lines"]["repeated"] == 0


def test_constant_series_are_quiet(replayed) -> None:
    answers = ({"endpoint": "a", "t": t, "prompt": "x", "text": "yes"} for at in range(40) for t in times(at))
    code, found, _ = replayed(logprobs(noise=0.0), values(spread=0.0), answers)

    assert code == 0
    assert found["alarms"] == found["notices"] == []


def test_a_batch_with_few_of_the_usual_requests_is_not_measured(replayed) -> None:
    code, found, _ = replayed(logprobs(nights=range(30)), logprobs(nights=range(30, 40), count=2))

    assert code == 0
    assert found["alarms"] == []


def test_prompts_that_fail_for_some_nights_move_no_length(replayed) -> None:
    def answers():
        for at in range(40):
            for number, t in enumerate(times(at)):
                long = number % 2
                if at < 25 or not long:
                    text = "word " * (100 if long else 10) + "x" * ((at * 7 + number) % 5)
                    yield {"endpoint": "a", "t": t, "prompt": f"{long}", "text": text}

    code, found, _ = replayed(answers(), options=("--detector", "length"))

    assert code == 0
    assert found["alarms"] == []


def test_bad_lines_are_named_counted_and_kept_out(tmp_path: Path, capsys) -> None:
    path = write(tmp_path / "r.jsonl", values())
    path.write_bytes(path.read_bytes() + b'{"endpoint": "a"}\n\nnot json\n[]\n')

    code = run(COMMANDS, ["replay", str(path), "--format", "json"])

    out = capsys.readouterr()
    assert code == 0
    assert json.loads(out.out)["lines"] == {"used": 400, "bad": 3, "repeated": 0}
    assert f"{path}:401: left out: needs exactly one of top_logprobs, text, value" in out.err
    assert f"{path}:403: left out: no JSON" in out.err
    assert f"{path}:404: left out: no JSON object" in out.err


@pytest.mark.parametrize("content", [b"", b"\n\n", b"nothing\n"])
def test_a_file_without_a_usable_line_is_unmeasured(tmp_path: Path, capsys, content: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)

    assert run(COMMANDS, ["replay", str(path)]) == 3
    assert "no line can be used" in capsys.readouterr().err


def test_a_file_that_cant_be_read_is_a_usage_error(tmp_path: Path, capsys) -> None:
    assert run(COMMANDS, ["replay", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl: cannot be read: No such file or directory" in capsys.readouterr().err


def test_files_may_be_given_in_any_order_and_twice(tmp_path: Path, capsys) -> None:
    records = list(logprobs(change=25))
    early = write(tmp_path / "early.jsonl", records[:200])
    late = write(tmp_path / "late.jsonl", records[200:])
    found = []
    for files in ([early, late], [late, early, late]):
        run(COMMANDS, ["replay", *map(str, files), "--format", "json"])
        found.append(json.loads(capsys.readouterr().out))

    assert found[0] == found[1]
    assert found[0]["alarms"][0]["since"] == "2026-01-26"


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_people_read_alarms_what_is_quiet_and_what_is_unknown(tmp_path: Path, capsys, form: str) -> None:
    path = write(tmp_path / "r.jsonl", logprobs(change=25), values(), values("b", nights=range(3)))

    assert run(COMMANDS, ["replay", str(path), "--format", form]) == 1

    out = capsys.readouterr().out
    assert "2026-01-26" in out
    assert "UNKNOWN b, value (seconds): 3 of 15 nights measured" in out
    assert "Quiet" in out
    assert "1 alarms" in out
