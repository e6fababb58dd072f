import pytest

from ringtrue.causes import Divergence, Ids, Symptoms, decide
from ringtrue.records import Cause

EVERYWHERE = Divergence.EVERYWHERE


@pytest.mark.parametrize(
    ("symptoms", "cause"),
    [
        (Symptoms(ids=Ids.CUT_BEYOND), Cause.CONTEXT),
        (Symptoms(ids=Ids.OTHER_VOCABULARY, greedy_departs=True), Cause.IDENTITY),
        (Symptoms(ids=Ids.OTHER_VOCABULARY, greedy_departs=False), Cause.PROMPT),
        (Symptoms(ids=Ids.DIFFERENT, divergence=EVERYWHERE), Cause.PROMPT),
        (Symptoms(ids=Ids.EQUAL, divergence=EVERYWHERE, sessions_alike=False), Cause.MIXTURE),
        (Symptoms(ids=Ids.EQUAL, divergence=Divergence.BEYOND, sessions_alike=True), Cause.CONTEXT),
        (Symptoms(ids=Ids.EQUAL, divergence=Divergence.NONE, samples_differ=True), Cause.SAMPLING),
        (
            Symptoms(ids=Ids.EQUAL, divergence=EVERYWHERE, sessions_alike=True, other_model_fits=True),
            Cause.IDENTITY,
        ),
        (
            Symptoms(ids=Ids.EQUAL, divergence=EVERYWHERE, sessions_alike=True, other_model_fits=False),
            Cause.NUMERICS,
        ),
        (Symptoms(parsed_wrong=True), Cause.PARSING),
        (Symptoms(slow=True), Cause.PERFORMANCE),
        (Symptoms(callers_own=True), Cause.CALLER),
        (Symptoms(ids=Ids.EQUAL, divergence=Divergence.NONE, samples_differ=False), Cause.UNKNOWN),
    ],
)
def test_each_row_of_the_table_names_its_cause(symptoms: Symptoms, cause: Cause) -> None:
    assert decide(symptoms)[0] is cause


def test_the_upper_row_goes_before_the_lower() -> None:
    everything = Symptoms(ids=Ids.DIFFERENT, divergence=EVERYWHERE, parsed_wrong=True, slow=True)

    assert decide(everything)[0] is Cause.PROMPT


def test_what_nobody_looked_for_stays_an_alternative() -> None:
    cause, alternatives = decide(Symptoms(ids=Ids.EQUAL, divergence=EVERYWHERE))

    assert cause is Cause.NUMERICS
    assert alternatives == (Cause.MIXTURE, Cause.IDENTITY)


def test_what_was_looked_for_and_not_found_is_no_alternative() -> None:
    seen = Symptoms(ids=Ids.EQUAL, divergence=EVERYWHERE, sessions_alike=True, other_model_fits=False)

    assert decide(seen) == (Cause.NUMERICS, ())


def test_with_nothing_seen_the_cause_is_unknown_and_everything_possible() -> None:
    cause, alternatives = decide(Symptoms())

    assert cause is Cause.UNKNOWN
    assert set(alternatives) == set(Cause) - {Cause.UNKNOWN}
