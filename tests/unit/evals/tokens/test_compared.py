from dataclasses import replace

import pytest

from evals.tokens.chats import choose_chats
from evals.tokens.diff_report import diff_exit_code
from evals.tokens.outcome import Match
from ringtrue.exit_codes import ExitCode
from ringtrue.records import Party, Severity, State
from tests.unit.evals.tokens.served import NOW, compare_shown, compared_with, shown_by, without_ids
from tests.unit.evals.tokens.small_format import small_format
from tests.unit.tokenizer_checks.templates.sources import CHATML

OWN = "{{ bos_token }}" + CHATML
TOOLLESS = OWN.replace("if tools", "if false")


def _state(found):
    (verdict,) = found.verdicts(NOW)
    return verdict.verdict


def _of(found, code):
    return next(finding for finding in found.findings if finding.code == code)


def test_an_honest_server_is_fine():
    found = compared_with()

    assert {one.match for one in found.outcomes} == {Match.EQUAL}
    assert (_state(found), diff_exit_code(found, NOW)) == (State.OK, ExitCode.FINE)
    assert found.explained == ()


SOME = (
    "one_user",
    "system",
    "prefill",
    "thinking_off",
    "tool_html",
    "tool_round_trip",
    "reasoning_history",
    "digits",
)
FAULTS = (
    "bos_doubled",
    "generation_prompt_dropped",
    "final_message_closed",
    "default_system_dropped",
    "system_dropped",
    "tools_dropped",
    "tool_keys_sorted",
    "tool_json_compact",
    "tool_json_html",
    "reasoning_dropped",
    "tool_calls_dropped",
    "thinking_ignored",
    "words_cut",
    "front_cut",
)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_by_what_it_does_to_all_chats(fault):
    found = compared_with(fault, names=SOME)

    assert fault in found.explained
    assert (_state(found), diff_exit_code(found, NOW)) == (State.CHANGED, ExitCode.DRIFT)
    assert fault in found.findings[0].message


def test_a_fault_that_would_have_changed_an_equal_chat_explains_nothing():
    own = small_format()
    chats = choose_chats(("one_user", "digits"))
    shown = shown_by(own.prompts, chats)
    faulty = shown_by(own.prompts, chats, "bos_doubled")

    found = compare_shown(own.prompts, chats, {**shown, "digits": faulty["digits"]})

    assert found.outcomes[1].blame is not None
    assert found.outcomes[1].blame.mutations == ("bos_doubled",)
    assert found.explained == ()


def test_a_server_that_drops_tools_which_the_model_writes_is_to_blame():
    found = compared_with(template=TOOLLESS)

    tools = _of(found, "tokens.relation.tools")
    assert (tools.party, tools.severity) == (Party.PROVIDER, Severity.WARN)
    assert "tools are ignored" in tools.message


def test_a_server_that_writes_tools_which_the_model_ignores_is_to_blame():
    own = small_format(TOOLLESS)
    chats = choose_chats((), marker=own.marker)

    found = compare_shown(own.prompts, chats, shown_by(small_format(OWN).prompts, chats))

    tools = _of(found, "tokens.relation.tools")
    assert (tools.party, tools.severity) == (Party.PROVIDER, Severity.WARN)
    assert "tools reach the prompt; by the model's own template" in tools.message
    assert _of(found, "tokens.tools").value == pytest.approx(5 / 21)


def test_a_template_that_ignores_tools_on_both_sides_is_the_models_and_no_alarm():
    own = small_format(TOOLLESS)
    chats = choose_chats((), marker=own.marker)

    found = compare_shown(own.prompts, chats, shown_by(own.prompts, chats))

    tools = _of(found, "tokens.relation.tools")
    assert (tools.party, tools.severity) == (Party.MODEL, Severity.INFO)
    assert not any(finding.code == "tokens.relation.key_order" for finding in found.findings)
    assert _state(found) is State.OK


def test_counts_that_fit_are_consistent_and_those_that_do_not_are_a_change():
    fits, differs = compared_with(counted=True), compared_with("bos_doubled", counted=True)

    assert {one.match for one in fits.outcomes} == {Match.COUNT_FITS}
    assert "the server shows no IDs" in fits.findings[0].message
    assert _state(fits) is State.OK
    assert {one.match for one in differs.outcomes} == {Match.COUNT_DIFFERS}
    assert _state(differs) is State.CHANGED


def test_nothing_shown_is_unmeasured_with_the_servers_words():
    own = small_format()
    chats = choose_chats(())
    shown = {
        name: without_ids(ways, "404: no such route") for name, ways in shown_by(own.prompts, chats).items()
    }

    found = compare_shown(own.prompts, chats, shown)

    assert {one.note for one in found.outcomes} == {"404: no such route"}
    assert (_state(found), diff_exit_code(found, NOW)) == (State.UNKNOWN, ExitCode.UNMEASURED)


def test_routes_that_disagree_are_one_finding_with_the_number_of_chats():
    own = small_format()
    chats = choose_chats(("one_user", "digits"))
    shown = {
        name: (*ways, replace(ways[0], way="tokenize", used=False, ids=(ways[0].ids or ())[1:]))
        for name, ways in shown_by(own.prompts, chats).items()
    }

    found = compare_shown(own.prompts, chats, shown)

    told = [finding for finding in found.findings if finding.code.startswith("tokens.relation")]
    assert {finding.code for finding in told} == {"tokens.relation.count", "tokens.relation.routes"}
    assert all("in 2 of 2 chats" in finding.message for finding in told)
    assert {finding.n for finding in told} == {2}


def test_a_chat_that_the_model_refuses_is_no_difference():
    own = small_format("{{ raise_exception('no') if tools }}" + OWN)
    chats = choose_chats(("one_user", "one_tool"))

    found = compare_shown(own.prompts, chats, shown_by(small_format().prompts, chats))

    assert [one.match for one in found.outcomes] == [Match.EQUAL, Match.REFUSED]
    assert "no" in found.outcomes[1].note
    assert _state(found) is State.OK


def test_a_model_that_refuses_all_is_unmeasured_and_not_the_servers_silence():
    own = small_format("{{ raise_exception('not today') }}")
    chats = choose_chats(("one_user",))

    found = compare_shown(own.prompts, chats, shown_by(small_format().prompts, chats))

    assert (_state(found), found.findings[0].party) == (State.UNKNOWN, Party.MODEL)
    assert "refuses every chat" in found.findings[0].message
    assert "not today" in found.findings[0].message


def test_ids_that_no_vocabulary_of_the_model_has_are_another_tokenizers():
    own = small_format()
    chats = choose_chats(("one_user",))
    shown = shown_by(own.prompts, chats)
    foreign = tuple(i + 70_000 for i in shown["one_user"][0].ids or ())

    found = compare_shown(own.prompts, chats, {"one_user": (replace(shown["one_user"][0], ids=foreign),)})

    assert found.findings[0].code == "tokens.tokenizer"
