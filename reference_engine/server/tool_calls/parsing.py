"""From the raw text of an answer to what an honest server delivers."""

from __future__ import annotations

import random
import string
from dataclasses import replace

from reference_engine.server.answering import Answer
from reference_engine.server.tool_calls.delivered import Delivered
from toolcall_validator.asked import Asked
from toolcall_validator.families import parse


def raw_text(answer: Answer) -> str:
    """Return what the model wrote, the format's control tokens included, without the token that ends it."""
    model = answer.prompt.treatment.model
    ids = [step.token_id for step in answer.steps]
    if ids and ids[-1] in model.eos_ids:
        ids = ids[:-1]
    # Half a character at the end of a cut answer is held back, as in every stream.
    return b"".join(map(model.codec.token_bytes, ids)).decode("utf-8", errors="ignore")


def delivered(answer: Answer, asked: Asked, rng: random.Random) -> Delivered:
    """Return the answer as an honest server delivers it.

    Calls are what the format's own parser finds in the raw text. One that
    ``max_tokens`` cut is delivered as far as it goes, if name and arguments had
    begun. ``rng`` draws the ids of formats that write none.
    """
    forced, family = answer.prompt.forced, answer.prompt.treatment.tool_format
    if forced is None or not forced.calls:
        return Delivered(answer.text, finish_reason=answer.finish_reason)
    schemas = {
        name: tool.parameters for name, tool in asked.tools.items() if isinstance(tool.parameters, dict)
    }
    parsed = parse(family, raw_text(answer), schemas)
    found = [call for call in parsed.calls if call.name and call.arguments]
    calls = tuple(replace(call, id=call.id or _identity(family, rng)) for call in found)
    called = calls and answer.finish_reason == "stop"
    return Delivered(
        parsed.content, parsed.reasoning, calls, "tool_calls" if called else answer.finish_reason
    )


def _identity(family: str, rng: random.Random) -> str:
    if family.startswith("mistral"):  # its template refuses any other length
        return "".join(rng.choices(string.ascii_letters + string.digits, k=9))
    return f"call_{rng.getrandbits(96):024x}"
