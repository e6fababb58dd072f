import pytest

from reference_engine.models.names import ModelName, Variant, parse_name
from ringtrue.errors import ModelError


def test_a_name_without_variants_is_exact_fp32():
    name = parse_name("owner/model")
    assert name == ModelName("owner/model")
    assert name.dtype == "fp32"
    assert name.bits(0) is None


def test_a_name_prints_as_it_was_written():
    assert str(parse_name("smollm2-135m@int8+int3:layers=7,12")) == "smollm2-135m@int8+int3:layers=7,12"


def test_later_variants_override_earlier_ones_layer_by_layer():
    name = parse_name("m@int8+int3:layers=7,12")
    assert [name.bits(layer) for layer in (0, 7, 11, 12)] == [8, 3, 8, 3]
    assert parse_name("m@int3:layers=7+int8").bits(7) == 8


def test_rounded_weights_are_computed_in_fp32_unless_a_dtype_is_named():
    assert parse_name("m@int4").dtype == "fp32"
    assert parse_name("m@int4+bf16").dtype == "bf16"
    assert parse_name("m@fp16+int4").dtype == "fp16"


def test_the_exact_name_keeps_the_dtype_and_drops_the_rounding():
    assert str(parse_name("m@int4+bf16").exact) == "m@bf16"
    assert str(parse_name("m@int4").exact) == "m"


def test_another_dtype_keeps_the_rounding():
    assert str(parse_name("m@int4+bf16").with_dtype("fp16")) == "m@int4+fp16"
    assert str(parse_name("m@int4+bf16").with_dtype("fp32")) == "m@int4"


def test_layers_named_by_any_variant_are_known():
    assert parse_name("m@int8:layers=1+int3:layers=2,3").layers == {1, 2, 3}


def test_a_folder_with_an_at_sign_takes_its_variants_from_the_last_one():
    assert parse_name("/models/a@b/c@bf16") == ModelName("/models/a@b/c", (Variant("bf16"),))


@pytest.mark.parametrize(
    "text", ["", "@int4", "m@", "m@int5", "m@int4+", "m@int4:layer=3", "m@int4:layers=a"]
)
def test_a_typo_is_answered_with_what_exists(text):
    with pytest.raises(ModelError) as caught:
        parse_name(text)
    assert "int4" in caught.value.remedy


def test_a_dtype_takes_no_layers():
    with pytest.raises(ModelError, match="takes no layers"):
        parse_name("m@bf16:layers=3")


def test_an_unknown_dtype_is_refused():
    with pytest.raises(ModelError, match="fp8"):
        parse_name("m").with_dtype("fp8")
