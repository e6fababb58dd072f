from collections.abc import Callable, Sequence

import pytest

from ringtrue.causes import Ids
from ringtrue.records import Cause, Check, Finding, Interval, Severity
from tokenizer_checks.agreement import Agreement, Asked, agree
from tokenizer_checks.comparison import compare
from tokenizer_checks.findings import Harm, judge

LENGTHS = [32] * 8 + [512] * 4 + [2048] * 4
HARMFUL = Harm(0.7, Interval(0.5, 0.9, 0.98), 16, beyond=True)
HARMLESS = Harm(0.003, Interval(0.001, 0.005, 0.98), 16, beyond=False)

Change = Callable[[list[int]], list[int]]


def ids_of(length: int) -> list[int]:
    return [1, 9690, 198, *range(1000, 1000 + length), 2, 198]


def seen(change: Change, lengths: Sequence[int] = LENGTHS, *, counted: bool = False) -> Agreement:
    asked = []
    for length in lengths:
        expected = ids_of(length)
        used = change(expected)
        asked.append(Asked(length, compare(expected, None if counted else used, len(used))))
    return agree(asked)


def findings(
    agreement: Agreement, harm: Harm | None = None, *, departs: bool | None = None
) -> dict[Check, Finding]:
    return {f.check: f for f in judge("acme", agreement, harm, greedy_departs=departs)}


def keep_last(limit: int) -> Change:
    return lambda ids: ids[-limit:]


def test_equal_ids_are_fine() -> None:
    (finding,) = findings(seen(list)).values()

    assert (finding.check, finding.severity, finding.n) == (Check.TOKENS, Severity.INFO, 16)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda ids: [1, *ids], "the start"),
        (lambda ids: [1, *ids[3:]], "the start"),
        (lambda ids: ids[:-2], "the end"),
        (lambda ids: [*ids[:9], 5, *ids[10:]], "inside the prompt"),
    ],
)
def test_a_template_fault_is_prompt_and_says_where(change: Change, place: str) -> None:
    finding = findings(seen(change), HARMFUL)[Check.TOKENS]

    assert (finding.cause, finding.severity) == (Cause.PROMPT, Severity.FAIL)
    assert place in finding.message
    assert finding.evidence["expected_ids"] != finding.evidence["used_ids"]


def test_a_template_fault_without_harm_is_a_change() -> None:
    assert findings(seen(lambda ids: [1, *ids]), HARMLESS)[Check.TOKENS].severity is Severity.WARN


def test_a_cut_beyond_a_length_is_context_and_the_tokens_are_fine_below() -> None:
    result = findings(seen(keep_last(1024)), HARMFUL)

    assert result[Check.CONTEXT].cause is Cause.CONTEXT
    assert result[Check.CONTEXT].onset == 2048
    assert "1,024 tokens" in result[Check.CONTEXT].message
    assert result[Check.TOKENS].severity is Severity.INFO
    assert "below 2,048" in result[Check.TOKENS].message


def test_a_cut_at_every_length_is_the_prompt_and_not_the_context() -> None:
    agreement = seen(lambda ids: ids[:-2])

    assert agreement.ids is Ids.DIFFERENT
    assert findings(agreement)[Check.TOKENS].cause is Cause.PROMPT


def test_a_cut_with_too_few_right_prompts_below_it_is_not_blamed_on_the_length() -> None:
    assert seen(keep_last(1024), [32, 32, 2048, 2048]).ids is Ids.DIFFERENT


def test_a_cut_that_some_long_prompts_escape_is_not_blamed_on_the_length() -> None:
    cut = [Asked(2048, compare(ids_of(2048), ids_of(2048)[-1024:], None))]
    whole = [Asked(length, compare(ids_of(length), ids_of(length), None)) for length in LENGTHS]

    assert agree(cut + whole).ids is Ids.DIFFERENT


def test_another_vocabulary_is_identity_when_the_answers_depart_and_else_prompt() -> None:
    agreement = seen(lambda ids: [3 * i + 50_000 for i in ids])

    assert agreement.ids is Ids.OTHER_VOCABULARY
    assert findings(agreement, departs=True)[Check.TOKENS].cause is Cause.IDENTITY
    assert findings(agreement, departs=False)[Check.TOKENS].cause is Cause.PROMPT
    unsure = findings(agreement, departs=None)[Check.TOKENS]
    assert (unsure.cause, unsure.alternatives) == (Cause.PROMPT, (Cause.IDENTITY,))


def test_counts_that_fit_are_called_consistent_and_no_more() -> None:
    finding = findings(seen(list, counted=True))[Check.TOKENS]

    assert finding.severity is Severity.INFO
    assert "the server shows no IDs" in finding.message


def test_counts_that_differ_are_prompt_with_what_counts_cannot_exclude() -> None:
    finding = findings(seen(lambda ids: [1, *ids], counted=True), HARMFUL)[Check.TOKENS]

    assert finding.cause is Cause.PROMPT
    assert set(finding.alternatives) == {Cause.CONTEXT, Cause.IDENTITY}
    assert "1 token more" in finding.message


def test_counts_that_stop_growing_are_a_cut() -> None:
    assert findings(seen(keep_last(1024), counted=True))[Check.CONTEXT].cause is Cause.CONTEXT


def test_nothing_shown_is_unmeasured() -> None:
    agreement = agree([Asked(32, compare(ids_of(32), None, None))] * 20)
    (finding,) = findings(agreement).values()

    assert not finding.measured
    assert "neither token IDs nor prompt token counts" in finding.message
