import pytest

from reference_engine.models.names import ModelName, Variant, parse_name
from ringtrue.errors import ModelError


def test_a_name_without_variants_is_exact_fp32():
    name = parse_name("owner/model")
    assert name == ModelName("owner/model")
    assert name.dtype == "fp32"
    assert name.weights(0) is None
    assert name.cache(0) is None


def test_a_name_prints_as_it_was_written():
    assert str(parse_name("smollm2-135m@int8+int3:layers=7,12")) == "smollm2-135m@int8+int3:layers=7,12"


def test_later_variants_override_earlier_ones_layer_by_layer():
    name = parse_name("m@int8+int3:layers=7,12")
    assert [name.weights(layer).kind for layer in (0, 7, 11, 12)] == ["int8", "int3", "int8", "int3"]
    assert parse_name("m@int3:layers=7+int8").weights(7).kind == "int8"


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


def test_a_group_size_and_layers_may_stand_in_any_order():
    variant = Variant("int4", (3, 5), group=128)
    assert parse_name("m@int4:group=128:layers=3,5") == ModelName("m", (variant,))
    assert parse_name("m@int4:layers=3,5:group=128") == ModelName("m", (variant,))
    assert str(ModelName("m", (variant,))) == "m@int4:group=128:layers=3,5"


def test_the_usual_group_size_is_the_same_name():
    assert parse_name("m@int4:group=32") == parse_name("m@int4")


@pytest.mark.parametrize("kind", ["fp8", "q4_0", "kv-int8"])
def test_a_group_size_belongs_to_the_integers(kind):
    with pytest.raises(ModelError, match=r"takes no group.*int4:group=128"):
        parse_name(f"m@{kind}:group=64")


def test_a_gguf_type_may_be_written_as_llama_cpp_does():
    assert parse_name("m@Q6_K") == parse_name("m@q6_k")


def test_weights_and_cache_are_rounded_independently():
    name = parse_name("m@int8+kv-fp8+q4_0:layers=2+kv-int8:layers=1")
    assert [name.weights(layer).kind for layer in (0, 1, 2)] == ["int8", "int8", "q4_0"]
    assert [name.cache(layer) for layer in (0, 1, 2)] == ["kv-fp8", "kv-int8", "kv-fp8"]
    assert name.rounds_cache
    assert str(name.without_cache) == "m@int8+q4_0:layers=2"
    assert not name.without_cache.rounds_cache


def test_one_model_has_one_canonical_name():
    spellings = ["m@bf16+kv-fp8+int4", "m@kv-fp8+int4+bf16", "m@int4+kv-fp8+fp16+bf16"]
    assert {str(parse_name(text).canonical) for text in spellings} == {"m@int4+kv-fp8+bf16"}
    assert str(parse_name("m@int8+int4").canonical) == "m@int8+int4"


def test_only_a_rounding_without_layers_covers_the_whole_model():
    assert parse_name("m@q8_0:layers=1").whole_weights is None
    assert parse_name("m@q8_0+int4:layers=1").whole_weights == Variant("q8_0")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@int4",
        "m@",
        "m@int5",
        "m@int4+",
        "m@int4:layer=3",
        "m@int4:layers=a",
        "m@int4:group=0",
        "m@int4:group=",
        "m@int4:layers=1:layers=2",
        "m@fp8:",
        "m@kv-int4",
    ],
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
