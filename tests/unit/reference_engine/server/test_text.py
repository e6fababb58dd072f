import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_engine.server.text import TextAssembler


def _feed(codec, text: str, stops: list[str]) -> tuple[list[str], TextAssembler]:
    assembler = TextAssembler(codec, stops)
    deltas = []
    for token_id in codec.encode(text):
        deltas.append(assembler.feed(token_id))
        if assembler.stopped:
            break
    deltas.append(assembler.finish())
    return deltas, assembler


@given(text=st.text(max_size=20))
def test_deltas_join_to_the_text(byte_codec, text):
    deltas, _ = _feed(byte_codec, text, [])
    assert "".join(deltas) == text


def test_a_character_of_several_tokens_comes_out_whole(byte_codec):
    deltas, _ = _feed(byte_codec, "é🎉", [])
    assert [delta for delta in deltas if delta] == ["é", "🎉"]


def test_an_unfinished_character_ends_as_a_replacement_character(byte_codec):
    assembler = TextAssembler(byte_codec, [])
    assert assembler.feed(byte_codec.encode("é")[0]) == ""
    assert assembler.finish() == "\ufffd"


def test_control_tokens_have_no_text(byte_codec):
    assert TextAssembler(byte_codec, []).feed(byte_codec.eos_id) == ""


@pytest.mark.parametrize(("stops", "expected"), [(["END"], "ab"), (["zz", "bE"], "a"), (["X"], "abENDcd")])
def test_text_ends_before_the_first_stop_string(byte_codec, stops, expected):
    deltas, assembler = _feed(byte_codec, "abENDcd", stops)
    assert "".join(deltas) == expected
    assert assembler.stopped == (expected != "abENDcd")


def test_the_beginning_of_a_stop_string_is_held_back_until_it_is_none(byte_codec):
    deltas, _ = _feed(byte_codec, "aENx", ["END"])
    assert deltas == ["a", "", "", "ENx", ""]


def test_what_is_held_back_comes_out_at_the_end(byte_codec):
    deltas, _ = _feed(byte_codec, "aEN", ["END"])
    assert deltas == ["a", "", "", "EN"]
