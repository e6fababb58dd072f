"""Which code speaks for a night of tool calls, who is at fault, and which layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evals.parts.toolcalls.prompts import JudgedPrompt, check_of
from evals.parts.toolcalls.tools_in_prompt import ToolsInPrompt
from ringtrue.records import DRIFT, Cause, Check, Party, State
from toolcall_validator.fault import CODES

# Faults of what the server puts around the model's text: no raw text can hold them.
_OF_THE_SERVER = ("stream.", "id.", "finish.", "usage.", "args.empty_stream")
_FORCED = ("choice.", "output.")  # codes of which a raw text says nothing
_OTHERS = (Cause.PARSING, Cause.PROMPT, Cause.SAMPLING, Cause.NUMERICS, Cause.IDENTITY, Cause.MIXTURE)


@dataclass(frozen=True, slots=True)
class Blame:
    """Who has to act, the layer, and the layers that are not excluded."""

    party: Party = Party.UNKNOWN
    cause: Cause = Cause.UNKNOWN
    alternatives: tuple[Cause, ...] = ()


def speaker_of(scored: Sequence[JudgedPrompt], check: Check) -> str:
    """Return the code that most faulty requests have as their most upstream one; of equals the first."""
    counts = Counter(worst for one in scored if (worst := one.worst(check)) is not None)
    return max(CODES, key=lambda code: counts[code])


def party_of(scored: Sequence[JudgedPrompt], code: str) -> Party:
    """Return who is at fault in most answers with that code, others' than its server's left out."""
    parties = Counter(one.party for judged in scored for one in judged.all_faults if one.code == code)
    for other in (Party.MODEL, Party.CALLER):
        parties.pop(other, None)
    return parties.most_common(1)[0][0] if parties else Party.UNKNOWN


def blame_for(code: str, scored: Sequence[JudgedPrompt], tools: ToolsInPrompt, logprobs: State) -> Blame:
    """Blame the layer: what the server wraps around the text and what raw text shows is parsing.

    Where the tools never reached the prompt, what else is wrong in answers that
    should use them comes from there; by the model's own template, it is the
    model's. Otherwise the cause is unknown, with what tonight's logprobs
    and token IDs do not exclude.
    """
    party = party_of(scored, code)
    if code.startswith(_OF_THE_SERVER):
        return Blame(party, Cause.PARSING)
    hit = [one for one in scored if code in one.failed(check_of(code))]
    raw = any(one.source is not None for one in hit)
    if raw and party is Party.PROVIDER and not code.startswith(_FORCED):
        return Blame(party, Cause.PARSING)
    with_tools = sum(bool(one.prompt.request.tools) for one in hit)
    if tools.dropped and 2 * with_tools > len(hit):
        return Blame(Party.MODEL if tools.own_template else Party.PROVIDER, Cause.PROMPT)
    excluded: set[Cause] = set()
    if logprobs is State.OK:
        # Arithmetic and weights are the model's own where its logprobs are, at least of short prompts.
        excluded |= {Cause.NUMERICS, Cause.IDENTITY}
    if tools.differ is False and tools.shown:
        excluded.add(Cause.PROMPT)
    first = (Cause.NUMERICS,) if logprobs in DRIFT else ()
    others = dict.fromkeys((*first, *_OTHERS))
    return Blame(party, Cause.UNKNOWN, tuple(cause for cause in others if cause not in excluded))
