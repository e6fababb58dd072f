"""The command ``validate`` over recordings: what it prints, what it refuses, how it exits."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from ringtrue.cli import COMMANDS, run
from tests.unit.toolcall_validator.cases import arguments, faults, quirks, shapes
from tests.unit.toolcall_validator.exchanges import OK, call, opening, plain, stream
from toolcall_validator.validate import validate

Record = dict[str, Any]
Ran = tuple[int, str, str]
SAMPLES = (*arguments.SAMPLES, *faults.SAMPLES, *quirks.SAMPLES, *shapes.SAMPLES)


def named(record: Record, identity: Any, endpoint: str = "acme", **more: Any) -> Record:
    return record | {"id": identity, "endpoint": endpoint} | more


def asked_about(record: Record, place: str) -> Record:
    """The same exchange, of another prompt."""
    messages = [{"role": "user", "content": f"Will it rain in Oslo or in {place}?"}]
    return record | {"request": record["request"] | {"messages": messages}}


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return what the command says to a recording: exit code, stdout, stderr."""

    def command(*lines: Record | str, form: str = "json", options: tuple[str, ...] = ()) -> Ran:
        path = tmp_path / "recorded.jsonl"
        path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines))
        code = run(COMMANDS, ["validate", str(path), "--format", form, *options])
        out = capsys.readouterr()
        return code, out.out, out.err

    return command


def lines_of(out: str) -> tuple[list[Any], Any]:
    *exchanges, last = map(json.loads, out.rstrip("\n").split("\n"))
    return exchanges, last


def test_each_exchange_is_a_line_in_its_place_with_the_findings_of_the_validator(command) -> None:
    records = [sample.record | {"id": sample.id} for sample in SAMPLES]
    code, out, _ = command(*records)
    exchanges, last = lines_of(out)
    assert code == 1
    assert [one["id"] for one in exchanges] == [record["id"] for record in records]
    found = [one["findings"] for one in exchanges]
    assert found == [[fault.as_dict() for fault in validate(record)] for record in records]
    assert set(exchanges[0]) == {"id", "findings"}
    assert (last["schema"], last["exchanges"]) == (1, len(records))


def test_valid_answers_exit_with_0_and_warnings_do_too(command) -> None:
    warned = stream(opening(OK), usage=None)
    code, out, err = command(plain(call()), warned)
    exchanges, last = lines_of(out)
    assert code == 0
    assert "error" not in err
    assert [[one["code"] for one in line["findings"]] for line in exchanges] == [[], ["usage.missing"]]
    assert last["metrics"][""]["call_validity"]["value"] == 1


@pytest.mark.parametrize("form", ["table", "json", "markdown", "junit"])
def test_a_fail_fault_exits_with_1_in_every_form_and_is_named_with_its_place(command, form: str) -> None:
    code, out, _ = command(named(plain(call()), "fine"), named(plain(call('{"place": 3}')), "bad"), form=form)
    assert code == 1
    assert "schema.string_as_number" in out
    assert "bad" in out


@pytest.mark.parametrize("form", ["table", "json", "markdown", "junit"])
def test_a_recording_without_an_answer_exits_with_3_and_says_what_to_do(command, form: str) -> None:
    unanswered = {"id": "x", "request": {"model": "m"}, "error": {"kind": "unreachable", "message": "no"}}
    for lines in ((), (unanswered,)):
        code, _, err = command(*lines, form=form)
        assert code == 3
        assert "nothing could be judged" in err
        assert "ringtrue probe --record" in err


def test_only_unscored_requests_are_nothing_judged(command) -> None:
    broken = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "nonsense"}}}]
    code, out, _ = command(named(plain(call(), asked={"tools": broken}), "x"))
    exchanges, last = lines_of(out)
    assert code == 3
    assert exchanges[0]["findings"][0]["code"] == "request.broken_schema"
    assert last["metrics"]["acme"]["scored"] == 0
    assert last["metrics"]["acme"]["call_validity"] is None


def test_bad_lines_are_named_by_file_and_line_and_the_others_are_judged(command, tmp_path: Path) -> None:
    code, out, err = command(plain(call()), "{", "", "[]", {"id": "y", "request": {}}, plain(call()))
    exchanges, last = lines_of(out)
    assert code == 2
    assert (len(exchanges), last["exchanges"]) == (2, 2)
    assert "3 lines can't be judged" in err
    for number, why in ((2, "no JSON"), (4, "no object"), (5, "there is neither response nor chunks")):
        assert f"{tmp_path}/recorded.jsonl:{number}: {why}" in err


def test_a_file_of_requests_is_said_to_be_a_probes_input(command) -> None:
    code, _, err = command({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": []})
    assert code == 2
    assert "recorded.jsonl:1" in err
    assert "toolcall_suite" in err
    assert "ringtrue probe --record" in err


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path, capsys) -> None:
    assert run(COMMANDS, ["validate", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    lines = json.dumps(plain(call())).encode() + b"\n{\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert run(COMMANDS, ["validate", "-", "--format", "json"]) == 2
    out = capsys.readouterr()
    assert lines_of(out.out)[0] == [{"id": "p", "findings": []}]
    assert "stdin:2" in out.err


def test_ids_come_back_as_they_were_and_what_has_none_is_named_by_its_line(command, tmp_path: Path) -> None:
    answer = plain(call())
    without = {name: value for name, value in answer.items() if name != "id"}
    _, out, _ = command(answer | {"id": 7}, answer | {"id": "a\u2028b"}, without, answer | {"id": None})
    path = f"{tmp_path}/recorded.jsonl"
    assert [one["id"] for one in lines_of(out)[0]] == [7, "a\u2028b", f"{path}:3", f"{path}:4"]


def test_what_json_cannot_say_is_judged_all_the_same(command) -> None:
    deep: Record = {}
    for _ in range(300):
        deep = {"a": deep}
    nan = json.dumps(plain(content="It rains.") | {"id": "nan", "note": float("nan")})
    record = plain(content="It rains.", asked={"extra": deep}) | {"id": "x\ud800", "endpoint": "\ud800"}
    code, out, _ = command(record, plain(content="\ud800 rain"), nan)
    assert code == 0
    assert [one["id"] for one in lines_of(out)[0]] == ["x?", "p", "nan"]


def test_the_two_answers_of_one_endpoint_to_one_prompt_are_a_pair_in_either_order(command) -> None:
    one, other = plain(call()), stream(opening('{"place": 3}'))
    code, out, _ = command(
        named(one, "p1"),
        named(other, "s1"),
        named(asked_about(other, "Rome"), "s2"),
        named(asked_about(one, "Rome"), "p2"),
        named(asked_about(one, "Bonn"), "p3"),
        named(asked_about(other, "Bonn"), "s3", endpoint="other"),
    )
    exchanges, last = lines_of(out)
    assert code == 1
    assert [(pair["plain"], pair["streamed"]) for pair in last["pairs"]] == [("p1", "s1"), ("p2", "s2")]
    assert {pair["code"] for pair in last["pairs"]} == {"stream.parity"}
    assert last["pairs"][0]["detail"] == "plain call, streamed schema.string_as_number"
    assert last["metrics"]["acme"]["stream_parity"]["value"] == 1
    assert last["metrics"]["other"]["stream_parity"] is None
    assert all(one["code"] != "stream.parity" for line in exchanges for one in line["findings"])


def test_what_names_no_endpoint_or_another_model_is_no_pair(command) -> None:
    one, other = plain(call()), stream(opening('{"place": 3}'))
    _, out, _ = command(one, other)
    assert lines_of(out)[1]["pairs"] == []
    assert lines_of(out)[1]["metrics"][""]["stream_parity"] is None
    _, out, _ = command(named(one, "a"), named(stream(opening("{"), asked={"model": "b"}), "b"))
    assert lines_of(out)[1]["pairs"] == []


def test_a_pair_that_differs_exits_with_1_though_each_answer_is_fine(command) -> None:
    for form in ("json", "table", "markdown", "junit"):
        code, out, _ = command(
            named(plain(call()), "p"), named(stream(*said("No."), finish="stop"), "s"), form=form
        )
        assert code == 1
        assert "plain call, streamed text" in out or "stream.parity in 1 pair" in out


def said(text: str) -> list[Record]:
    return [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}]


def test_retries_are_not_hidden_and_what_was_not_sent_says_nothing(command) -> None:
    failed = {"number": 1, "sent": 0.0, "failure": {"kind": "server_error", "message": "x"}}
    fine = {"number": 2, "sent": 1.0, "failure": None}
    unsent = {"id": "u", "endpoint": "acme", "request": {}, "error": {"kind": "budget", "message": "x"}}
    refused = unsent | {"id": "r", "error": {"kind": "rate_limited", "message": "x"}}
    _, out, _ = command(
        named(plain(call()), "a", attempts=[failed, fine]),
        named(plain(call()), "b", attempts=[fine]),
        named(plain(call()), "c"),
        unsent,
        refused,
    )
    found = lines_of(out)[1]["metrics"]["acme"]["first_attempt_availability"]
    assert (found["events"], found["trials"]) == (2, 4)


def test_a_reference_says_where_a_call_is_due_and_how_well_it_agrees_with_itself(
    command, tmp_path: Path
) -> None:
    places = ["Rome", "Bonn", "Lima"]
    calls = [asked_about(plain(call()), place) for place in places]
    prose = [asked_about(plain(content="No."), place) for place in places]
    reference = tmp_path / "reference.jsonl"
    rows = [calls[0], calls[1], prose[2], calls[0], prose[1]]
    reference.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    _, out, _ = command(calls[0], prose[1], prose[2], options=("--reference", str(reference)))
    found = lines_of(out)[1]["metrics"][""]
    assert (found["effective_rate"]["events"], found["effective_rate"]["trials"]) == (1, 2)
    assert found["trigger_f1"]["value"] == pytest.approx(2 / 3)
    assert found["reference_rerun_f1"]["value"] == pytest.approx(2 / 3)
    low, high = found["success_of_steps"]["interval"]
    assert found["success_of_steps"]["value"] == pytest.approx(0.5**15)
    assert low < 0.5**15 < high


def test_endpoints_are_apart_and_compared_on_the_prompts_that_they_share(command) -> None:
    good = [named(asked_about(plain(call()), str(n)), f"g{n}", "good") for n in range(40)]
    bad = [
        named(asked_about(plain(call(OK if n % 2 else "oops")), str(n)), f"b{n}", "bad") for n in range(40)
    ]
    _, out, _ = command(*good, *bad, options=("--seed", "3"))
    last = lines_of(out)[1]
    rates = {name: found["request_validity"]["value"] for name, found in last["metrics"].items()}
    assert rates == {"good": 1, "bad": 0.5}
    [apart] = last["differences"]
    assert (apart["endpoint"], apart["against"], apart["value"], apart["prompts"]) == (
        "bad",
        "good",
        -0.5,
        40,
    )
    assert apart["interval"][0] < -0.5 < apart["interval"][1] < 0
    assert lines_of(command(*good, *bad, options=("--seed", "3"))[1])[1] == last


def test_the_table_and_markdown_show_counts_examples_and_intervals(command) -> None:
    bad = [named(plain(call("oops")), f"bad-{n}") for n in range(5)]
    for form in ("table", "markdown"):
        _, out, _ = command(*bad, named(plain(call(), asked={"tool_choice": "required"}), "fine"), form=form)
        assert "acme" in out
        assert "args.not_json" in out
        assert "bad-0, call 0, arguments 0-4" in out
        assert "bad-4" not in out  # the first few are enough
        for name in ("effective_rate", "request_validity", "15 steps in a row"):
            assert name in out
        assert "95 % interval" in out


def test_junit_is_xml_whatever_the_names_and_has_a_suite_an_endpoint(command) -> None:
    unanswered = {"id": "x", "endpoint": "silent", "request": {}, "error": {"kind": "unreachable"}}
    code, out, _ = command(
        named(plain(call("oops")), "a\u0000b", endpoint="ac\u0001me"),
        named(plain(call()), "fine", endpoint="fine"),
        unanswered,
        form="junit",
    )
    assert code == 1
    report = fromstring(out)  # noqa: S314 - our own
    suites = {suite.get("name"): suite for suite in report}
    assert suites.keys() == {"acme", "fine", "silent"}
    counts = {name: (suite.get("failures"), suite.get("errors")) for name, suite in suites.items()}
    families = len(suites["fine"])
    assert counts == {"acme": ("1", "0"), "fine": ("0", "0"), "silent": ("0", str(families))}
    [failure] = suites["acme"].iter("failure")
    assert "args.not_json in 1 exchange" in failure.attrib["message"]
