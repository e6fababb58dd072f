from dataclasses import replace
from typing import Any

import orjson
import pytest

from ringtrue.records import Cause, Check, Finding, Party, Severity
from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer
from tokenizer_checks.blame import Blame, Layer, blame
from tokenizer_checks.blame_findings import Differing, difference_findings, layer_of, relation_finding
from tokenizer_checks.difference import Difference, difference
from tokenizer_checks.metamorphic import Relation

ASKED = "<|im_start|>user\nWhy is the sky blue, and the sunset red?<|im_end|>\n"
SHORT = "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
SYSTEM = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
PROMPT = "<s>" + SYSTEM + ASKED + "<|im_start|>assistant\n"


def _differing(small: SmallTokenizer, expected: str, used: str, **faults: str) -> tuple[Difference, Blame]:
    found = difference(small.ids(expected), small.ids(used), small.vocabulary)
    assert found is not None
    return found, blame(found, small.vocabulary, {name: small.ids(text) for name, text in faults.items()})


@pytest.fixture
def two_layers(small: SmallTokenizer) -> Differing:
    doubled = "<s>" + PROMPT
    return {
        "bos": _differing(small, PROMPT, doubled, bos_doubled=doubled, other=doubled),
        "bos_short": _differing(
            small, "<s>" + SHORT, "<s><s>" + SHORT, bos_doubled="<s><s>" + SHORT, third="<s><s>" + SHORT
        ),
        "system": _differing(small, PROMPT, PROMPT.replace(SYSTEM, "")),
    }


def test_each_layer_is_one_finding_and_the_one_with_most_tokens_comes_first(two_layers: Differing) -> None:
    system, bos = difference_findings("acme", two_layers, chats=5)

    assert (system.code, bos.code) == ("tokens.system", "tokens.bos")
    assert (bos.value, bos.unit, bos.n) == (2 / 5, "share", 5)
    assert (bos.check, bos.cause, bos.party) == (Check.TOKENS, Cause.PROMPT, Party.PROVIDER)
    assert bos.severity is Severity.WARN
    assert "in 2 of 5 chats" in bos.message


def test_only_the_faults_that_give_all_of_a_layers_prompts_are_named(two_layers: Differing) -> None:
    bos = difference_findings("acme", two_layers, chats=5)[1]

    assert bos.evidence["faults"] == ["bos_doubled"]
    assert bos.evidence["chats"] == ["bos", "bos_short"]


def test_the_evidence_holds_at_most_64_ids_and_no_text(small: SmallTokenizer) -> None:
    expected = SYSTEM + ASKED * 40
    found = {"long": _differing(small, expected, ASKED * 40 + SYSTEM)}

    (finding,) = difference_findings("acme", found, chats=1)

    ids = [*finding.evidence["expected_ids"], *finding.evidence["used_ids"]]
    assert 0 < len(ids) <= 64
    assert "sky" not in orjson.dumps(finding.evidence).decode() + finding.message


def test_the_layer_is_that_of_the_known_faults_that_fit_where_they_are_of_one(small: SmallTokenizer) -> None:
    tools = '{"type": "function", "function": {"name": "f"}}'
    compact = PROMPT.replace("helpful", tools.replace(": ", ":").replace(", ", ","))
    found, told = _differing(small, PROMPT.replace("helpful", tools), compact, tool_json_compact=compact)

    (finding,) = difference_findings("acme", {"chat": (found, told)}, chats=1)

    assert finding.code == "tokens.tools"
    assert layer_of(told) is Layer.TOOLS
    unknown = replace(told, mutations=("bos_doubled", "tool_json_compact"), layer=Layer.WHITE_SPACE)
    assert layer_of(unknown) is Layer.WHITE_SPACE
    assert layer_of(unknown, ("tool_json_compact",)) is Layer.TOOLS


def test_no_difference_is_no_finding() -> None:
    assert difference_findings("acme", {}, chats=9) == ()


def test_chats_of_which_only_counts_were_seen_are_said_to_be_so(two_layers: Differing) -> None:
    findings = difference_findings("acme", two_layers, chats=5, counted=True)

    assert all("only the counts" in finding.message for finding in findings)


def test_another_vocabulary_may_be_another_model(small: SmallTokenizer) -> None:
    expected = small.ids(PROMPT)
    found = difference(expected, [i + 70_000 for i in expected], small.vocabulary)
    assert found is not None

    (finding,) = difference_findings("acme", {"chat": (found, blame(found, small.vocabulary))}, chats=1)

    assert finding.code == "tokens.tokenizer"
    assert (finding.cause, finding.alternatives) == (Cause.PROMPT, (Cause.IDENTITY,))


def test_a_cut_may_be_the_contexts(small: SmallTokenizer) -> None:
    expected = small.ids(PROMPT)
    found = difference(expected, expected[:-40], small.vocabulary)
    assert found is not None

    (finding,) = difference_findings("acme", {"chat": (found, blame(found, small.vocabulary))}, chats=1)

    assert finding.code == "tokens.truncation"
    assert finding.alternatives == (Cause.CONTEXT,)


def _related(kept: bool | None, party: Party, **fields: Any) -> Finding:
    return relation_finding("acme", Relation("tools", kept, "tools are ignored", **fields), party=party)


def test_a_relation_that_a_server_breaks_is_a_warning() -> None:
    finding = _related(False, Party.PROVIDER, at=7)

    assert (finding.code, finding.severity) == ("tokens.relation.tools", Severity.WARN)
    assert (finding.cause, finding.party) == (Cause.PROMPT, Party.PROVIDER)
    assert finding.evidence == {"first": 7}


def test_a_relation_that_the_models_own_template_breaks_is_no_warning() -> None:
    finding = _related(False, Party.MODEL)

    assert (finding.severity, finding.party) == (Severity.INFO, Party.MODEL)


def test_a_relation_that_nothing_told_is_unmeasured() -> None:
    assert not _related(None, Party.PROVIDER).measured
    assert _related(True, Party.PROVIDER).measured
