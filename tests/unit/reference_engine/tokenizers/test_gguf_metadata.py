import struct

import gguf
import pytest

from reference_engine.tokenizers.gguf_metadata import read_metadata
from ringtrue.errors import ModelError
from tests.unit.reference_engine.tokenizers.conftest import vocabulary_path


def test_every_key_has_the_value_that_the_gguf_library_reads():
    path = vocabulary_path("bert-bge")
    read = read_metadata(path)
    theirs = gguf.GGUFReader(path)

    expected = {key: field.contents() for key, field in theirs.fields.items() if not key.startswith("GGUF.")}

    assert read == expected
    assert len(read["tokenizer.ggml.tokens"]) == 30_522


def test_numbers_truth_values_and_lists_of_every_kind_are_read(tmp_path):
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("u8", 200)
    writer.add_int8("i8", -3)
    writer.add_uint16("u16", 60_000)
    writer.add_int16("i16", -300)
    writer.add_int32("i32", -70_000)
    writer.add_uint64("u64", 2**40)
    writer.add_int64("i64", -(2**40))
    writer.add_float64("f64", 0.1)
    writer.add_bool("yes", True)
    writer.add_array("bytes", b"\x00\xff")
    writer.add_array("names", ["", "\u4f60", "\n"])
    write(writer)

    read = read_metadata(path)

    assert {key: read[key] for key in ("u8", "i8", "u16", "i16", "i32", "u64", "i64", "f64", "yes")} == {
        "u8": 200, "i8": -3, "u16": 60_000, "i16": -300, "i32": -70_000, "u64": 2**40, "i64": -(2**40),
        "f64": 0.1, "yes": True,
    }  # fmt: skip
    assert read["bytes"] == [0, 255]
    assert read["names"] == ["", "\u4f60", "\n"]


def test_a_file_written_by_a_big_endian_machine_is_read(tmp_path):
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
    writer.add_array("numbers", [1, 70_000])
    write(writer)

    assert read_metadata(path)["numbers"] == [1, 70_000]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "cannot be read"),
        (b"GGML and more", "no GGUF file"),
        (b"GGUF" + struct.pack("<I", 1), "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2), "middle of its metadata"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 77), "unknown kind 77"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"\xff" + struct.pack("<I", 8), "cannot be read"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63) + b"k", "middle of its metadata"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path, content, problem):
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)

    with pytest.raises(ModelError, match=problem) as raised:
        read_metadata(path)
    assert raised.value.where == str(path)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.7, 0.999])
def test_a_file_cut_short_anywhere_in_its_metadata_is_refused(tmp_path, share):
    whole = vocabulary_path("bert-bge").read_bytes()
    path = tmp_path / "short.gguf"
    path.write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(ModelError, match="middle of its metadata"):
        read_metadata(path)


def write(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
