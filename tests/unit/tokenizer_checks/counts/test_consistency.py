from hypothesis import given
from hypothesis import strategies as st

from tokenizer_checks.counts.consistency import consistent, indistinguishable, undetectable

OWN = {"base": 10, "system": 16, "turns": 31, "tool": 90, "typed": 10}
LIBRARY = {
    "own": OWN,
    "bos.double": {name: count + 1 for name, count in OWN.items()},
    "tools.dropped": {**OWN, "tool": 10},
    "typed.repr": {**OWN, "typed": 19},
    "tools.sorted": dict(OWN),
    "raises on tools": {name: count for name, count in OWN.items() if name != "tool"},
}


def test_the_whole_consistent_set_is_returned() -> None:
    told = consistent(OWN, LIBRARY)

    assert [(fit.name, fit.hidden) for fit in told.fits] == [
        ("own", 0),
        ("raises on tools", 0),
        ("tools.sorted", 0),
        ("bos.double", -1),
    ]
    assert told.own("own") is True


def test_a_fault_excludes_the_own_template_and_names_the_requests_that_are_wrong() -> None:
    told = consistent(LIBRARY["tools.dropped"], LIBRARY)

    assert told.own("own") is False
    assert "tools.dropped" in {fit.name for fit in told.fits}
    assert {misfit.name: misfit.wrong for misfit in told.misfits}["own"] == {"tool": -80}


@given(st.sampled_from(sorted(LIBRARY)), st.integers(-50, 500))
def test_a_constant_that_a_provider_hides_changes_nothing_but_its_number(name: str, hidden: int) -> None:
    plain = consistent(LIBRARY[name], LIBRARY)
    shifted = consistent({ask: count + hidden for ask, count in LIBRARY[name].items()}, LIBRARY)

    assert {(fit.name, fit.hidden + hidden) for fit in plain.fits} == {
        (fit.name, fit.hidden) for fit in shifted.fits
    }


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9)),
    st.dictionaries(st.text(max_size=2), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9))),
)
def test_every_hypothesis_is_a_fit_a_misfit_or_not_held(
    counts: dict[str, int], library: dict[str, dict[str, int]]
) -> None:
    told = consistent(counts, library)

    names = [fit.name for fit in told.fits] + [misfit.name for misfit in told.misfits] + list(told.unheld)
    assert sorted(names) == sorted(library)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9), min_size=3), st.data())
def test_the_true_hypothesis_is_never_excluded(counts: dict[str, int], data: st.DataObject) -> None:
    seen = data.draw(st.sets(st.sampled_from(sorted(counts)), min_size=3))

    told = consistent({ask: counts[ask] for ask in seen}, {"true": counts})

    assert [fit.name for fit in told.fits] == ["true"]


def test_counts_that_only_some_requests_have_are_enough_for_what_they_show() -> None:
    told = consistent({"base": 10, "system": 16, "tool": 10}, LIBRARY)

    assert {fit.name for fit in told.fits} == {"tools.dropped"}
    assert told.unheld == ("raises on tools",)


def test_too_few_counts_say_nothing() -> None:
    told = consistent({"base": 10, "tool": 90}, LIBRARY)

    assert told.fits == ()
    assert told.own("own") is None
    assert told.sentence == "2 counts of prompt tokens are too few to tell templates apart"


def test_a_second_bos_is_told_where_no_tokens_are_hidden() -> None:
    told = consistent(LIBRARY["bos.double"], LIBRARY, hidden=0)

    assert [fit.name for fit in told.fits] == ["bos.double"]
    assert told.own("own") is False


def test_counts_of_no_known_template_say_so() -> None:
    told = consistent({"base": 1, "system": 5, "turns": 99, "tool": 3, "typed": 60}, {"own": OWN})

    assert "consistent with none of 1 templates and faults; nearest is own" in told.sentence


def test_the_sentence_names_all_of_the_set() -> None:
    told = consistent(OWN, {"own": OWN, "bos.double": LIBRARY["bos.double"]})

    assert told.sentence == (
        "5 counts of prompt tokens are consistent with: own, bos.double with 1 token fewer in every prompt"
    )


def test_faults_with_the_same_counts_are_listed_as_undetectable() -> None:
    blind = undetectable({name: LIBRARY[name] for name in LIBRARY if name != "raises on tools"}, "own")

    assert blind.equal == ("tools.sorted",)
    assert blind.constant == {"bos.double": 1}


def test_hypotheses_that_differ_by_a_constant_share_a_group() -> None:
    assert indistinguishable(LIBRARY) == (("own", "bos.double", "tools.sorted"),)
