import dataclasses
import json

import pytest

from reference_engine.baselines.corpus_files import CorpusForm, read_corpus
from reference_engine.models.codec import TokenCodec
from ringtrue.errors import UsageError
from tests.small_models import byte_level_tokenizer

CHAT = [{"role": "user", "content": "héllo"}]


def written(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def ids_of(corpus):
    return [sequence.token_ids.tolist() for sequence in corpus]


def test_text_is_cut_into_sequences_and_the_tail_is_kept(small, tmp_path):
    text = "abcdefghij" * 3
    (tmp_path / "a.txt").write_text(text)
    corpus = read_corpus([tmp_path / "a.txt"], small, length=14)
    assert [len(sequence) for sequence in corpus] == [14, 14, 2]
    assert [i for ids in ids_of(corpus) for i in ids] == list(small.codec.encode(text))
    assert [sequence.where.removeprefix(f"{tmp_path}/") for sequence in corpus] == [
        "a.txt, tokens from 0",
        "a.txt, tokens from 14",
        "a.txt, tokens from 28",
    ]


def test_a_tail_of_one_token_has_no_score_and_is_left_out(small, tmp_path):
    (tmp_path / "a.md").write_text("abcde")
    assert [len(sequence) for sequence in read_corpus([tmp_path / "a.md"], small, length=2)] == [2, 2]


def test_text_is_cut_at_the_context_where_that_is_below_the_default(small, tmp_path):
    (tmp_path / "a.txt").write_text("a" * 300)
    assert [len(sequence) for sequence in read_corpus([tmp_path / "a.txt"], small)] == [256, 44]


def test_a_mark_at_the_beginning_of_a_file_is_no_text(small, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfab")
    assert ids_of(read_corpus([tmp_path / "a.txt"], small)) == [list(small.codec.encode("ab"))]


def test_chats_are_rendered_by_the_model_s_own_template(small, tmp_path):
    file = written(
        tmp_path / "chats.jsonl",
        json.dumps({"messages": CHAT}),
        "",
        json.dumps({"model": "it", "messages": CHAT, "temperature": 0.3, "stream": True, "tools": []}),
        json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": "héllo"}]}]}),
    )
    expected = list(small.codec.render(CHAT))
    assert ids_of(read_corpus([file], small)) == [expected] * 3


def test_an_answer_that_only_calls_tools_has_no_content(small, tmp_path):
    calls = [*CHAT, {"role": "assistant", "content": None, "tool_calls": []}]
    file = written(tmp_path / "chats.jsonl", json.dumps({"messages": calls}))
    expected = small.codec.render([*CHAT, {"role": "assistant", "content": "", "tool_calls": []}])
    assert ids_of(read_corpus([file], small)) == [list(expected)]


def test_chats_can_be_rendered_without_the_generation_prompt(small, tmp_path):
    file = written(tmp_path / "chats.ndjson", json.dumps({"messages": CHAT}))
    corpus = read_corpus([file], small, generation_prompt=False)
    assert ids_of(corpus) == [list(small.codec.render(CHAT, generation_prompt=False))]


def test_token_ids_come_bare_or_under_their_name(small, tmp_path):
    file = written(tmp_path / "ids.jsonl", '{"id": "a", "token_ids": [1, 2, 3]}', "[4, 5]\r")
    corpus = read_corpus([file], small)
    assert ids_of(corpus) == [[1, 2, 3], [4, 5]]
    assert [sequence.where for sequence in corpus] == [f"{file}:1", f"{file}:2"]


def test_files_of_several_forms_make_one_corpus_in_their_order(small, tmp_path):
    ids = written(tmp_path / "ids.jsonl", "[1, 2]")
    chats = written(tmp_path / "chats.jsonl", json.dumps({"messages": CHAT}))
    text = tmp_path / "text"
    text.write_text("ab")
    corpus = read_corpus([chats, text, ids], small)
    assert ids_of(corpus) == [list(small.codec.render(CHAT)), list(small.codec.encode("ab")), [1, 2]]


def test_a_form_can_be_forced(small, tmp_path):
    file = written(tmp_path / "lines.txt", "[1, 2]")
    assert ids_of(read_corpus([file], small, form=CorpusForm.IDS)) == [[1, 2]]
    named = written(tmp_path / "text.jsonl", "[1, 2]")
    forced = read_corpus([named], small, form=CorpusForm.TEXT)
    assert ids_of(forced) == [list(small.codec.encode("[1, 2]\n"))]


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["[1, 2]", "[1, 2"], 2, "not JSON"),
        (["[1, 2]", '{"token_ids": [1, NaN]}'], 2, "not JSON"),
        (["[1, 258]"], 1, "no token 258 .* 0 to 257"),
        (["[1, 2]", "[3]"], 2, "has 1 token,"),
        (["[1, 2]", "[]"], 2, "has 0 tokens"),
        (["[1, 2]", "[1, true]"], 2, "no list of token IDs"),
        (["[1, 2]", '{"token_ids": "12"}'], 2, "no list of token IDs"),
        (["[1, 2]", "[1.0, 2.0]"], 2, "whole numbers"),
        ([json.dumps([1] * 257)], 1, r"has 257 tokens, the model takes 256\. Shorten it"),
        (["[1, 2]", json.dumps({"messages": CHAT})], 2, "no list of token IDs"),
        ([json.dumps({"messages": CHAT}), "[1, 2]"], 2, "no chat"),
        (["", json.dumps({"prompt": "x"})], 2, "neither a chat nor a list"),
        (['{"messages": []}'], 1, "no chat"),
        (['{"messages": ["hi"]}'], 1, "no chat"),
        ([json.dumps({"messages": CHAT, "tools": "all"})], 1, "no chat"),
        ([json.dumps({"messages": CHAT, "chat_template_kwargs": {"thinking": True}})], 1, "not supported"),
        (['{"messages": [{"content": "x"}]}'], 1, "no role"),
        (['{"messages": [{"role": "user", "content": 0}]}'], 1, "content is no text"),
        (['{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}'], 1, "type text"),
        ([json.dumps({"messages": [{"role": "user", "content": "x" * 300}]})], 1, "the model takes 256"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(small, tmp_path, lines, line, message):
    file = written(tmp_path / "c.jsonl", *lines)
    with pytest.raises(UsageError, match=message) as caught:
        read_corpus([file], small)
    assert caught.value.where == f"{file}:{line}"


def test_a_model_without_a_template_takes_no_chats(small, tmp_path):
    file = written(tmp_path / "chats.jsonl", json.dumps({"messages": CHAT}))
    bare = dataclasses.replace(small, codec=TokenCodec(byte_level_tokenizer(template=None)))
    with pytest.raises(UsageError, match=r"chats\.jsonl:1: the model has no chat template.*token IDs"):
        read_corpus([file], bare)


@pytest.mark.parametrize(("name", "content"), [("a.txt", ""), ("a.txt", "x"), ("a.jsonl", "\n\n")])
def test_an_empty_corpus_is_named(small, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=rf"{name}: .*the corpus is empty"):
        read_corpus([tmp_path / name], small)


def test_no_corpus_at_all_is_an_error(small):
    with pytest.raises(UsageError, match="no corpus was named"):
        read_corpus([], small)


def test_a_file_that_cannot_be_read_is_named(small, tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.txt: .*cannot be read: No such file"):
        read_corpus([tmp_path / "nowhere.txt"], small)
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_corpus([tmp_path], small)


def test_bytes_that_are_no_text_are_named(small, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"abc\xff")
    with pytest.raises(UsageError, match=r"a\.txt: byte 3 is not UTF-8"):
        read_corpus([tmp_path / "a.txt"], small)
    (tmp_path / "a.jsonl").write_bytes(b"[1, 2]\n\xff\n")
    with pytest.raises(UsageError, match=r"a\.jsonl:2: byte 0 is not UTF-8"):
        read_corpus([tmp_path / "a.jsonl"], small)


@pytest.mark.parametrize(("length", "message"), [(1, "no score"), (257, "257 .*context of 256")])
def test_a_length_that_cannot_be_is_refused(small, tmp_path, length, message):
    (tmp_path / "a.txt").write_text("abc")
    with pytest.raises(UsageError, match=message):
        read_corpus([tmp_path / "a.txt"], small, length=length)


def test_reading_a_long_text_writes_nothing_to_the_terminal(small, tmp_path, capfd):
    (tmp_path / "a.txt").write_text("a" * 5_000)
    read_corpus([tmp_path / "a.txt"], small)
    assert capfd.readouterr() == ("", "")
