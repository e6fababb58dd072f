import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_engine.models.changes import Noise, Rope, Training
from reference_engine.models.names import ModelName, Variant, parse_name
from ringtrue.errors import ModelError

POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
SEEDS = st.integers(min_value=0, max_value=10**18 - 1)
CHANGES = st.one_of(
    st.builds(Rope, POSITIVE),
    st.builds(Training, st.integers(min_value=1, max_value=10**6), POSITIVE, SEEDS),
    st.builds(Noise, POSITIVE, SEEDS),
)


def test_a_change_is_read_with_its_numbers():
    assert parse_name("m@rope:base=500000") == ModelName("m", rope=Rope(500_000))
    assert parse_name("m@tuned:steps=2:rate=1e-5:seed=3") == ModelName("m", tuned=Training(2, 1e-5, 3))
    assert parse_name("m@tuned:noise=0.01") == ModelName("m", tuned=Noise(0.01))


@given(change=CHANGES)
def test_a_change_prints_as_a_name_that_reads_back_as_itself(change):
    name = parse_name(f"m@{change}+int4")
    assert change in {name.rope, name.tuned}
    assert parse_name(str(name)) == name


@pytest.mark.parametrize(
    "spellings",
    [
        ("m@rope:base=10000", "m@ROPE:base=1e4", "m@rope:base=10000.0"),
        ("m@tuned:steps=1:rate=0.001", "m@tuned:rate=1e-3:steps=01", "m@tuned:seed=0:steps=1:rate=1E-03"),
        (
            "m@tuned:noise=1+int4+bf16",
            "m@bf16+int4+tuned:noise=1.0",
            "m@tuned:noise=2+int4+bf16+tuned:noise=1",
        ),
        ("m@rope:base=5+tuned:noise=1", "m@tuned:noise=1+rope:base=7+rope:base=5"),
    ],
)
def test_equal_changes_are_one_name_however_they_are_written(spellings):
    assert len({str(parse_name(text).canonical) for text in spellings}) == 1


def test_a_whole_number_keeps_every_digit():
    assert parse_name("m@tuned:noise=1:seed=900719925474099301").tuned.seed == 900_719_925_474_099_301


def test_a_change_stays_in_another_dtype_and_when_nothing_is_rounded():
    name = parse_name("m@int4+tuned:noise=0.5+kv-fp8+rope:base=7+bf16")
    assert str(name.exact) == "m@tuned:noise=0.5+rope:base=7+bf16"
    assert str(name.with_dtype("fp32")) == "m@tuned:noise=0.5+rope:base=7+int4+kv-fp8"
    assert str(name.without_cache) == "m@tuned:noise=0.5+rope:base=7+int4+bf16"
    assert name.weights(0) == Variant("int4")


def test_the_unchanged_name_keeps_the_dtype_alone():
    assert str(parse_name("m@int4+tuned:noise=0.5+kv-fp8+rope:base=7+bf16").unchanged) == "m@bf16"
    assert parse_name("m@rope:base=7").unchanged.is_base
    assert not parse_name("m@rope:base=7").is_base
    assert not parse_name("m@tuned:noise=1").is_base


@pytest.mark.parametrize(
    "part",
    [
        "rope",
        "rope:base=",
        "rope:base=-1",
        "rope:base=0",
        "rope:base=1e999",
        "rope:base=nan",
        "rope:base=1:base=2",
        "rope:base=1:seed=2",
        "rope:base=1:layers=2",
        "tuned",
        "tuned:steps=1",
        "tuned:rate=1",
        "tuned:steps=0:rate=1",
        "tuned:steps=1.5:rate=1",
        "tuned:steps=1:rate=0",
        "tuned:steps=1:rate=1:noise=1",
        "tuned:noise=1:rate=1",
        "tuned:noise=0",
        "tuned:noise=1:seed=-1",
    ],
)
def test_a_change_that_means_nothing_is_answered_with_an_example(part):
    with pytest.raises(ModelError) as caught:
        parse_name(f"m@{part}")
    assert "rope:base=500000" in caught.value.remedy
    assert "tuned:steps=1:rate=1e-5" in caught.value.remedy
