from __future__ import annotations

import pytest

from ringtrue.records import Party, Severity
from tests.unit.toolcall_validator.exchanges import OK, call, delta, more, opening, plain, stream, tool
from toolcall_validator.fault import CODES, Fault, fault, in_order, party_of, severity_of
from toolcall_validator.loops import loop_start, repeating
from toolcall_validator.text import joined
from toolcall_validator.validate import Validator, validate


def only(record: object, code: str) -> Fault:
    (found,) = [one for one in validate(record) if one.code == code]
    return found


def test_a_fault_says_where_in_which_call_and_by_which_dialect() -> None:
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"n": {"type": "integer"}}}
    record = stream(
        delta(content="é"),
        opening("{}", "ping"),
        opening('{"n": ', "t", "call_b", 1),
        more('"4"}', 1),
        asked={"tools": [tool("t", draft), tool("ping", None)]},
    )
    assert only(record, "schema.stringified_scalar").as_dict() == {
        "code": "schema.stringified_scalar",
        "severity": "fail",
        "party": "unknown",
        "call": 1,
        "span": {"field": "arguments", "chunk": 3, "start": 0, "end": 10},
        "dialect": "draft-07",
    }


def test_a_span_counts_bytes_of_the_field_and_names_the_chunk_in_which_it_begins() -> None:
    span = only(
        stream(delta(content="é <|tool_"), delta(content="call_end|>"), opening(OK)), "leak.content"
    ).span
    assert span is not None
    assert (span.field, span.chunk, span.start, span.end) == ("content", 1, 3, 20)


def test_the_detail_names_keyword_and_path_and_no_text_of_the_answer() -> None:
    record = plain(call('{"place": "Oslo", "units": "a secret"}'))
    assert only(record, "schema.enum").detail == "enum at /units"


def test_arguments_cut_at_the_cap_are_the_callers_matter() -> None:
    cut = plain(call('{"place": "Os'), finish="length")
    assert only(cut, "args.truncated_tail").party is Party.CALLER
    assert only(plain(call('{"place": "Os')), "args.truncated_tail").party is Party.UNKNOWN


def test_the_reference_explains_a_script() -> None:
    record = plain(content="It is called Осло there.")
    assert [one.code for one in Validator().validate(record)] == ["output.unexpected_script"]
    assert Validator().validate(record, reference="Осло") == ()


def test_findings_come_most_upstream_first_whatever_the_rule() -> None:
    record = stream(delta(content="<|tool_call_end|>"), opening("{", "wether", ""), finish="stop", usage=None)
    codes = [one.code for one in validate(record)]
    assert codes == [
        "leak.content",
        "args.truncated_tail",
        "name.unknown",
        "id.missing",
        "finish.stop_with_call",
        "usage.missing",
    ]


def test_every_choice_is_judged() -> None:
    record = plain(content="Yes.")
    bad = {"index": 1, "message": {"tool_calls": [call("oops")]}, "finish_reason": "tool_calls"}
    record["response"]["choices"].append(bad)
    assert [one.code for one in validate(record)] == ["args.not_json"]


def test_a_stream_that_ends_in_an_error_keeps_what_it_said() -> None:
    record = stream(opening('{"place"'), {"error": {"message": "worker died"}}, finish=None)
    assert [one.code for one in validate(record)] == ["args.truncated_tail", "finish.missing"]


def test_a_pair_differs_when_only_one_side_breaks_or_calls() -> None:
    validator = Validator()
    good, streamed = plain(call()), stream(opening(OK))
    assert validator.validate_pair(good, streamed) == ()
    (broken,) = validator.validate_pair(good, stream(opening('{"place"')))
    assert (broken.code, broken.detail) == ("stream.parity", "plain call, streamed args.truncated_tail")
    (silent,) = validator.validate_pair(good, stream(delta(content="No."), finish="stop"))
    assert silent.detail == "plain call, streamed text"
    assert validator.validate_pair(good, {"request": {}, "error": {}}) == ()
    assert validator.validate_pair(good, {"request": {}, "response": {"error": "busy"}}) == ()


def test_severity_and_party_follow_the_code() -> None:
    assert severity_of("request.broken_schema") is Severity.INFO
    assert party_of("request.broken_schema") is Party.CALLER
    warnings = {code for code in CODES if severity_of(code) is Severity.WARN}
    assert warnings == {
        "stream.name_resent",
        "stream.null_identity",
        "stream.empty_identity",
        "stream.null_list",
        "usage.missing",
    }
    assert party_of("finish.missing") is Party.PROVIDER
    assert party_of("schema.type") is Party.UNKNOWN
    with pytest.raises(ValueError, match="there is no code"):
        fault("args.odd")


def test_faults_of_one_code_are_ordered_by_call() -> None:
    faults = [fault("id.missing", call=1), fault("id.missing", call=0), fault("leak.content")]
    assert [(one.code, one.call) for one in in_order(faults)] == [
        ("leak.content", None),
        ("id.missing", 0),
        ("id.missing", 1),
    ]


def test_text_does_not_depend_on_its_pieces() -> None:
    one, many = joined("content", [(0, "aéb")]), joined("content", [(0, "a"), (1, ""), (2, "éb")])
    assert one.value == many.value
    assert (many.span(1, 2).chunk, many.span(1, 2).start, many.span(1, 2).end) == (2, 1, 3)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("x" + "!" * 32, 1),
        ("!" * 31, None),
        ("abc" * 11, 0),
        ("0123456789" * 3, None),
        ("0123456789" * 4, 0),
        (" " * 40, 0),
        ("word " * 31 + "end", None),
    ],
)
def test_a_loop_is_four_copies_and_thirty_two_units(text: str, start: int | None) -> None:
    assert loop_start(text) == start


def test_a_loop_may_be_cut_inside_its_last_copy() -> None:
    assert repeating("ab" * 20 + "a") == 41
    assert repeating("".join(map(chr, range(200))) * 2) is None
