import pytest

from reference_engine.server.faults import Faults
from ringtrue.errors import ConfigError

SESSIONS = [f"session-{i}" for i in range(2_000)]


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_about_the_asked_share_of_sessions_meets_the_faults(share):
    met = sum(Faults(share=share).meets(session, seed=0) for session in SESSIONS)
    assert met / len(SESSIONS) == pytest.approx(share, abs=0.03)


def test_one_session_is_always_treated_alike():
    faults = Faults(share=0.5)
    assert all(faults.meets(s, seed=1) == faults.meets(s, seed=1) for s in SESSIONS[:50])


def test_another_seed_chooses_other_sessions():
    faults = Faults(share=0.5)
    assert [faults.meets(s, seed=1) for s in SESSIONS] != [faults.meets(s, seed=2) for s in SESSIONS]


def test_a_share_of_one_is_everybody_and_of_zero_nobody():
    assert all(Faults(share=1).meets(s, seed=0) for s in SESSIONS)
    assert not any(Faults(share=0).meets(s, seed=0) for s in SESSIONS)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("share", 1.5),
        ("share", -0.1),
        ("latency_s", -1),
        ("truncate_context", 0),
        ("corrupt_beyond", -3),
        ("top_k", 0),
        ("temperature_factor", 0),
        ("temperature_factor", float("nan")),
        ("temperature_factor", float("inf")),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_name(field, value):
    with pytest.raises(ConfigError) as caught:
        Faults(**{field: value})
    assert caught.value.where == field


@pytest.mark.parametrize(
    ("faults", "asked", "drawn"),
    [
        (Faults(), 0.7, 0.7),
        (Faults(temperature_factor=1.1), 0.5, 0.55),
        (Faults(temperature_factor=1.1), 0.0, 0.0),
        (Faults(ignore_temperature=True, temperature_factor=2), 0.7, 0.0),
    ],
)
def test_the_temperature_that_is_drawn_at(faults, asked, drawn):
    assert faults.temperature(asked) == pytest.approx(drawn)
