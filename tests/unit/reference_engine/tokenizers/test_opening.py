import json
import shutil

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from reference_engine.models.embedded import embedded_file
from reference_engine.tokenizers.opening import open_tokenizer
from ringtrue.errors import ModelError
from tests.small_models import DEFAULT_SYSTEM_TEMPLATE, byte_level_tokenizer


@pytest.fixture
def folder(tmp_path):
    byte_level_tokenizer().save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["", "tokenizer.json"])
def test_a_folder_and_its_tokenizer_json_are_read_with_the_configuration_and_template(folder, name):
    codec = open_tokenizer(folder / name)

    assert codec.decode(codec.encode("h\u00e9llo")) == "h\u00e9llo"
    assert codec.special_tokens["bos_token"] == "<s>"
    assert codec.template == DEFAULT_SYSTEM_TEMPLATE
    assert codec.encode_prompt("<s>")[0] == codec.bos_id


def test_a_bare_tokenizer_json_has_no_names_and_no_template(folder, tmp_path_factory):
    bare = tmp_path_factory.mktemp("bare") / "tokenizer.json"
    shutil.copy(folder / "tokenizer.json", bare)

    codec = open_tokenizer(bare)

    assert codec.encode("abc") == open_tokenizer(folder).encode("abc")
    assert codec.template is None


def test_the_tokenizer_json_goes_before_the_class_that_the_configuration_names(folder):
    expected = open_tokenizer(folder).encode("It's 1234 \u00e9")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    for name in ("LlamaTokenizer", "ClassOfTomorrow"):
        (folder / "tokenizer_config.json").write_text(json.dumps(config | {"tokenizer_class": name}))
        assert open_tokenizer(folder).encode("It's 1234 \u00e9") == expected


def test_what_goes_around_a_prompt_is_the_word_of_the_tokenizer_json(folder):
    # transformers does not follow add_bos_token either where there is a tokenizer.json.
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"add_bos_token": True}))
    assert open_tokenizer(folder).encode_prompt("a") == open_tokenizer(folder).encode("a")

    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    backend.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 256)])
    backend.save(str(folder / "tokenizer.json"))
    assert open_tokenizer(folder).encode_prompt("a") == (256, *open_tokenizer(folder).encode("a"))


def test_a_folder_with_a_gguf_file_alone_is_read_from_it(tmp_path):
    (tmp_path / "model.gguf").symlink_to(embedded_file())

    assert open_tokenizer(tmp_path).encode("1983") == open_tokenizer(embedded_file()).encode("1983")


def test_a_folder_of_vocabulary_and_merges_is_read_by_the_class_it_names(tmp_path):
    alphabet = byte_level_tokenizer().get_vocab()
    (tmp_path / "vocab.json").write_text(json.dumps({**alphabet, "he": 300, "<|endoftext|>": 301}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh e\n")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')

    assert open_tokenizer(tmp_path).encode("he")[0] == 300


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "cannot be read"),
        ({"tokenizer.json": "{"}, "no tokenizer.json"),
        ({"tokenizer.json": '{"model": {"type": "Foo"}}'}, "no tokenizer.json"),
        ({"tokenizer_config.json": "["}, "cannot be read"),
        ({"tokenizer_config.json": "[]"}, "holds no object"),
        ({"tokenizer_config.json": '{"tokenizer_class": "ClassOfTomorrow"}'}, "cannot be read"),
        ({"a.gguf": "x", "b.gguf": "x"}, "2 files"),
        ({"a.gguf": "x"}, "no GGUF file"),
    ],
)
def test_a_folder_that_holds_no_readable_tokenizer_says_why(tmp_path, files, problem):
    for name, content in files.items():
        (tmp_path / name).write_text(content)

    with pytest.raises(ModelError, match=problem) as raised:
        open_tokenizer(tmp_path)
    assert str(tmp_path) in str(raised.value.where)


def test_a_file_of_another_kind_is_refused_with_the_kinds_that_are_read(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")

    with pytest.raises(ModelError, match="no file of a tokenizer") as raised:
        open_tokenizer(tmp_path / "notes.txt")
    assert ".gguf" in str(raised.value.remedy)


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        open_tokenizer(tmp_path / "absent.gguf")
