import numpy as np
import pytest

from logprob_drift.token_only.samples import PAD, hamming_kernel, mmd2, night_series, permutation_test


def answers(
    rng: np.random.Generator, prompts: int = 12, n: int = 10, shift: float = 0.0, length: int = 20
) -> np.ndarray:
    """Prompt-specific tokens; with probability ``shift`` one from elsewhere."""
    base = np.arange(prompts)[:, None, None] * 10
    tokens = base + rng.integers(0, 4, (prompts, n, length))
    return np.where(rng.random(tokens.shape) < shift, 999, tokens)


def test_the_kernel_is_the_share_of_equal_positions() -> None:
    found = hamming_kernel(np.array([[[1, 2, PAD], [1, 3, PAD], [1, 2, 4]]]))

    assert found[0] == pytest.approx(np.array([[3, 2, 2], [2, 3, 1], [2, 1, 3]]) / 3)


def test_mmd2_equals_the_sum_over_pairs() -> None:
    rng = np.random.default_rng(0)
    kernel = hamming_kernel(answers(rng, prompts=2, n=5))
    first = np.array([[True, True, False, False, False]] * 2)

    by_hand = []
    for k in kernel:
        xx = np.mean([k[i, j] for i in (0, 1) for j in (0, 1) if i != j])
        yy = np.mean([k[i, j] for i in (2, 3, 4) for j in (2, 3, 4) if i != j])
        xy = np.mean([k[i, j] for i in (0, 1) for j in (2, 3, 4)])
        by_hand.append(xx + yy - 2 * xy)

    assert mmd2(kernel, first[None]) == pytest.approx([np.mean(by_hand)])


def test_equal_distributions_are_rarely_rejected_and_p_is_never_zero() -> None:
    rng = np.random.default_rng(1)
    found = [permutation_test(answers(rng), answers(rng), rng, 99) for _ in range(300)]

    assert min(test.p_value for test in found) >= 0.01
    assert np.mean([test.p_value <= 0.05 for test in found]) <= 0.08
    assert abs(np.mean([test.mmd2 for test in found])) < 0.002


def test_another_distribution_has_the_smallest_p_value() -> None:
    rng = np.random.default_rng(2)

    test = permutation_test(answers(rng), answers(rng, shift=0.3), rng)

    assert test.p_value == pytest.approx(1 / 1000)
    assert test.mmd2 > 0


def test_prompts_that_differ_from_one_another_are_never_mixed() -> None:
    """Were answers exchanged across prompts, each draw would look unlike the kept division."""
    rng = np.random.default_rng(3)
    constant = np.repeat(np.arange(6)[:, None, None], 8, axis=1) * np.ones((1, 1, 5), dtype=int)

    assert permutation_test(constant[:, :4], constant[:, 4:], rng, 99).p_value == 1.0


def test_lengths_count_as_differences() -> None:
    rng = np.random.default_rng(4)
    full = answers(rng)
    cut = answers(rng)
    cut[:, :, 12:] = PAD

    assert permutation_test(full, cut, rng, 199).p_value == pytest.approx(1 / 200)


def test_unpaired_or_single_answers_are_refused() -> None:
    rng = np.random.default_rng(5)
    with pytest.raises(ValueError, match="beside"):
        permutation_test(answers(rng), answers(rng, prompts=3), rng)
    with pytest.raises(ValueError, match="fewer than two"):
        permutation_test(answers(rng, n=1), answers(rng), rng)


def test_a_series_is_flat_until_the_change() -> None:
    rng = np.random.default_rng(6)
    nights = np.stack([answers(rng, shift=0.2 if night >= 20 else 0.0) for night in range(24)])

    series = night_series(nights, 14)

    spread = series[:20].std()
    assert abs(series[:14].mean() - series[14:20].mean()) < 2 * spread
    assert (series[20:] > series[:20].mean() + 8 * spread).all()


def test_a_series_needs_two_baseline_nights() -> None:
    with pytest.raises(ValueError, match="1 baseline nights"):
        night_series(np.stack([answers(np.random.default_rng(0))] * 3), 1)
