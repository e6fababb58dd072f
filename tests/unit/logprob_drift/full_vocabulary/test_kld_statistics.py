import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logprob_drift.full_vocabulary.figure import Figure
from logprob_drift.full_vocabulary.kld_statistics import KldStatistics, kld_statistics
from tests.unit.logprob_drift.positions import positions, random_positions


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def every_figure(found: KldStatistics) -> dict[str, Figure]:
    groups = {
        "perplexity": found.perplexity,
        "kl": found.kl,
        "delta_p": found.delta_p,
        "floor": found.floor,
    }
    flat = {
        f"{group} {name}": figure for group, figures in groups.items() for name, figure in figures.items()
    }
    return flat | {"same_top": found.same_top}


def width(figure: Figure) -> float:
    assert figure.interval is not None
    assert figure.interval.low is not None
    assert figure.interval.high is not None
    return figure.interval.high - figure.interval.low


def test_a_comparison_of_four_positions_by_hand() -> None:
    found = kld_statistics(
        positions(
            [0.0, 0.1, 0.2, 0.7],
            logprob_p=np.log([0.5, 0.5, 0.25, 0.5]),
            logprob_q=np.log([0.5, 0.25, 0.25, 0.25]),
            top1=[True, True, True, False],
        ),
        rng(),
        floor=np.array([0.0, 0.01, 0.02, 0.07]),
    )
    values = {name: figure.value for name, figure in every_figure(found).items()}

    assert values["perplexity reference"] == pytest.approx(2 ** (5 / 4))
    assert values["perplexity candidate"] == pytest.approx(2 ** (7 / 4))
    assert values["perplexity ln_ratio"] == pytest.approx(math.log(2) / 2)
    assert values["perplexity ratio"] == pytest.approx(math.sqrt(2))
    assert values["perplexity difference"] == pytest.approx(2**1.75 - 2**1.25)
    # In units of ln 2 the logprobs are -1, -1, -2, -1 and -1, -2, -2, -2: Pearson's r is 1/3.
    assert values["perplexity correlation"] == pytest.approx(100 / 3)
    assert values["kl mean"] == pytest.approx(0.25)
    assert values["kl maximum"] == 0.7
    assert values["kl minimum"] == 0.0
    assert values["kl median"] == pytest.approx(0.15)
    assert values["kl p90"] == pytest.approx(0.2 + 0.7 * 0.5)  # place 2.7 of 0..3
    assert values["kl p5"] == pytest.approx(0.1 * 0.15)
    assert values["kl js_mean"] == pytest.approx(0.25 / 4)
    assert values["delta_p mean"] == pytest.approx(-12.5)
    assert values["delta_p rms"] == pytest.approx(25 / math.sqrt(2))
    assert values["delta_p minimum"] == pytest.approx(-25.0)
    assert values["delta_p maximum"] == 0.0
    assert values["delta_p p75"] == 0.0
    assert values["delta_p p25"] == pytest.approx(-25.0)
    assert values["same_top"] == 75.0
    assert values["floor mean"] == pytest.approx(0.025)
    assert values["floor ratio"] == pytest.approx(10)
    # One sequence: nothing is known of how another would differ.
    assert all(figure.interval is None and figure.n == 1 for figure in every_figure(found).values())


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.lists(st.integers(1, 40), min_size=1, max_size=9))
def test_every_value_equals_the_naive_computation(seed: int, lengths: list[int]) -> None:
    compared = random_positions(np.random.default_rng(seed), lengths, spread=1.0)

    found = kld_statistics(compared, rng(), resamples=50)

    delta = 100 * (np.exp(compared.logprob_q) - np.exp(compared.logprob_p))
    for percent, name in ((99.9, "p99.9"), (95, "p95"), (50, "median"), (0.1, "p0.1")):
        assert found.kl[name].value == pytest.approx(np.percentile(compared.kl, percent))
        assert found.delta_p[name].value == pytest.approx(np.percentile(delta, percent), abs=1e-9)
    assert found.kl["mean"].value == pytest.approx(compared.kl.mean())
    assert found.delta_p["rms"].value == pytest.approx(np.sqrt((delta**2).mean()))
    assert found.perplexity["candidate"].value == pytest.approx(np.exp(-compared.logprob_q.mean()))
    assert found.same_top.value == pytest.approx(100 * compared.top1.mean())
    assert found.positions == sum(lengths)
    if len(compared) > 2:
        naive = np.corrcoef(compared.logprob_p, compared.logprob_q)[0, 1]
        assert found.perplexity["correlation"].value == pytest.approx(100 * naive, abs=1e-6)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.lists(st.integers(1, 40), min_size=7, max_size=12))
def test_limits_enclose_the_value_or_are_open(seed: int, lengths: list[int]) -> None:
    compared = random_positions(np.random.default_rng(seed), lengths, spread=0.5)

    for name, figure in every_figure(kld_statistics(compared, rng(), resamples=400)).items():
        if "imum" in name:
            assert figure.interval is None
        elif figure.interval is not None and figure.value is not None:
            low, high = figure.interval.low, figure.interval.high
            assert low is None or low <= figure.value + 1e-9
            assert high is None or high >= figure.value - 1e-9
            assert figure.interval.level == 0.98


def test_too_few_sequences_have_no_interval_and_enough_have() -> None:
    six = kld_statistics(random_positions(rng(), [50] * 6), rng())
    seven = kld_statistics(random_positions(rng(), [50] * 7), rng())

    assert all(figure.interval is None for figure in every_figure(six).values())
    assert seven.kl["mean"].interval is not None


def test_positions_of_one_sequence_are_not_taken_as_independent() -> None:
    together = random_positions(rng(), [100] * 24, spread=1.0)
    alone = positions(together.kl, sequence=np.arange(2400), context=np.ones(2400, dtype=np.int64))

    by_sequence = kld_statistics(together, rng()).kl["mean"]
    by_position = kld_statistics(alone, rng()).kl["mean"]

    assert by_sequence.value == pytest.approx(by_position.value)
    assert width(by_sequence) > 3 * width(by_position)


def test_a_long_sequence_weighs_as_its_positions_do() -> None:
    lengths = [90, *([10] * 9)]
    values = np.concatenate([np.ones(90), np.zeros(90)])
    compared = positions(values, sequence=np.repeat(np.arange(10), lengths))

    found = kld_statistics(compared, rng())

    assert found.kl["mean"].value == pytest.approx(0.5)
    # Without the long sequence nothing is left, with it twice more than half.
    assert width(found.kl["mean"]) > 0.6


def test_the_interval_of_the_mean_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(5)
    truth = math.exp(-3 + 0.5 + 0.3**2 / 2)
    misses = 0
    for _ in range(200):
        compared = random_positions(generator, [20] * 24, spread=0.3)
        interval = kld_statistics(compared, generator, resamples=500).kl["mean"].interval
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        misses += not interval.low <= truth <= interval.high

    # Nominal 2 %: 4 of 200.
    assert misses <= 10


def test_a_percentile_that_few_sequences_reach_is_open_on_that_side() -> None:
    kl = np.tile(np.linspace(0.01, 0.02, 50), 10)
    kl[:3] = 9.0  # all beyond the 99.9th percentile lies in one sequence

    found = kld_statistics(positions(kl, sequence=np.repeat(np.arange(10), 50)), rng())

    high, middle = found.kl["p99.9"].interval, found.kl["median"].interval
    assert high is not None
    assert high.high is None
    assert high.low is not None
    assert middle is not None
    assert middle.high is not None


def test_a_model_against_itself_has_zeros_and_no_ratio_to_a_floor_of_zero() -> None:
    same = random_positions(rng(), [30] * 8)
    same = positions(
        np.zeros(240), sequence=same.sequence, logprob_p=same.logprob_p, logprob_q=same.logprob_p
    )

    found = kld_statistics(same, rng(), floor=np.zeros(240))

    assert found.kl["mean"].value == 0.0
    assert width(found.kl["mean"]) == 0.0
    assert width(found.kl["p99.9"]) == 0.0
    assert found.perplexity["ratio"].value == 1.0
    assert found.perplexity["correlation"].value == pytest.approx(100)
    assert found.floor["ratio"].value is None
    assert found.floor["ratio"].interval is None


def test_constant_logprobs_have_no_correlation() -> None:
    found = kld_statistics(positions(np.ones(40), sequence=np.repeat(np.arange(8), 5)), rng())

    assert found.perplexity["correlation"].value is None
    assert found.perplexity["correlation"].interval is None


def test_the_floor_is_drawn_with_the_sequences_it_was_measured_on() -> None:
    compared = random_positions(rng(), [40] * 16, spread=1.0)

    found = kld_statistics(compared, rng(), floor=compared.kl / 7)

    assert found.floor["ratio"].value == pytest.approx(7)
    assert width(found.floor["ratio"]) < 1e-9


def test_the_same_generator_gives_the_same_figures() -> None:
    compared = random_positions(rng(), [40] * 8)

    assert kld_statistics(compared, rng()) == kld_statistics(compared, rng())


def test_a_floor_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="the floor has shape"):
        kld_statistics(positions([0.1, 0.2]), rng(), floor=np.zeros(3))
