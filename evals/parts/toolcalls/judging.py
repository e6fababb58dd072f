"""From exchanges to judged requests: faults by form, pairs, and the party that the raw text names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from evals.parts.toolcalls.harness import Harness, open_to_blame, with_party
from evals.parts.toolcalls.prompts import Form, JudgedPrompt, Source
from probes.toolcall_suite.prompt import Due, ToolPrompt
from probes.toolcalls import PLAIN, STREAMED
from ringtrue.interchange import to_record
from ringtrue.records import Exchange, Severity
from toolcall_validator.fault import Fault
from toolcall_validator.judgement import Judgement
from toolcall_validator.validate import Validator, pair_faults

_FORMS = {PLAIN: Form.PLAIN, STREAMED: Form.STREAMED}
# What an honest answer shows that our own cap ended too early.
_OF_A_CUT = frozenset({"args.truncated_tail", "choice.required_violated", "output.structured_invalid"})


def answers_of(exchanges: Iterable[Exchange]) -> dict[str, dict[Form, Exchange]]:
    """Return the answered exchanges by request and form; failed ones are the check ``wire``'s."""
    found: dict[str, dict[Form, Exchange]] = {}
    for exchange in exchanges:
        prompt, _, form = exchange.request.id.rpartition("/")
        if exchange.error is None and form in _FORMS:
            found.setdefault(prompt, {})[_FORMS[form]] = exchange
    return found


class Judge:
    """Judges the answers of one endpoint and night; keeps compiled schemas and nothing else."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._validator = Validator(harness.schemas)

    def judge(self, prompt: ToolPrompt, answers: Mapping[Form, Exchange]) -> JudgedPrompt:
        """Return the faults of both answers; where an answer shows its own tokens, these name the party."""
        records = {form: to_record(exchange) for form, exchange in answers.items()}
        judgements = {form: self._validator.judge(record) for form, record in records.items()}
        cut = frozenset(form for form in answers if _cut(prompt, answers[form], judgements[form]))
        answers = {form: exchange for form, exchange in answers.items() if form not in cut}
        faults = {form: judgements[form].faults for form in answers}
        source = None
        for form, exchange in answers.items():
            text = self._harness.raw_text(exchange)
            if text is not None and open_to_blame(faults[form]):
                faults[form] = with_party(faults[form], self._harness.party(text, exchange))
                source = Source.OWN
        pair: tuple[Fault, ...] = ()
        if len(answers) == len(Form):
            pair = pair_faults(judgements[Form.PLAIN].outcome, judgements[Form.STREAMED].outcome)
        return JudgedPrompt(prompt, answers, faults, judgements, pair, source, cut)

    def unsettled(self, one: JudgedPrompt) -> bool:
        """Tell whether a raw text could say more than the answers themselves do."""
        return one.source is None and any(open_to_blame(faults) for faults in one.faults.values())

    def beside(self, one: JudgedPrompt, raw: Exchange) -> JudgedPrompt:
        """Return the same with the party that a raw answer to the same prompt names.

        Unchanged where that was not answered, or shows no tokens.
        """
        text = self._harness.raw_text(raw)
        if text is None:
            return one
        faults = {
            form: with_party(found, self._harness.party(text, one.answers[form]))
            if open_to_blame(found)
            else found
            for form, found in one.faults.items()
        }
        return replace(one, faults=faults, source=Source.AGAIN)


def _cut(prompt: ToolPrompt, exchange: Exchange, judgement: Judgement) -> bool:
    """Tell whether an answer ended at our cap before it could be sound, and is at fault in nothing else."""
    failed = {found.code for found in judgement.faults if found.severity is Severity.FAIL}
    # Reasoning comes before a call that is required; text in its place is a refusal to make it.
    excused = _OF_A_CUT - ({"choice.required_violated"} if exchange.text.strip() else set())
    if not judgement.cut or failed - excused:
        return False
    return bool(failed) or (prompt.due is Due.CALL and not judgement.called)
