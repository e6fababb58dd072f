from dataclasses import replace

from evals.parts.prompts.part import with_layers
from ringtrue.records import Cause, Check, Finding, Party, Severity

EQUAL = Finding("a", Check.TOKENS, "tokens.equal", Severity.INFO, Party.UNKNOWN, Cause.UNKNOWN, "as they are")
OTHER = replace(EQUAL, code="tokens.different", severity=Severity.WARN, message="other IDs")
LOGPROBS = replace(OTHER, check=Check.LOGPROBS, code="kl", message="KL")
TOOLS = replace(OTHER, code="prompts.tools", message="tools", value=0.2)
SYSTEM = replace(TOOLS, code="prompts.system", message="system", value=0.8)


def test_other_ids_are_told_with_the_layer_of_most_chats():
    told, logprobs = with_layers([OTHER, LOGPROBS], [LOGPROBS, TOOLS, SYSTEM])
    assert told.message == "other IDs; of the chats: system"
    assert logprobs == LOGPROBS


def test_ids_of_the_curve_that_are_right_stay_so_whatever_the_chats_tell():
    assert with_layers([EQUAL], [TOOLS]) == (EQUAL,)


def test_chats_that_are_right_add_nothing():
    assert with_layers([OTHER], [replace(SYSTEM, severity=Severity.INFO), LOGPROBS]) == (OTHER,)
