"""The entry: one recorded exchange in, its faults out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ringtrue.wire import Event as WireEvent
from ringtrue.wire import SSEDecoder, parse_json
from toolcall_validator.answer import assemble
from toolcall_validator.asked import read_request
from toolcall_validator.case import Case, json_of
from toolcall_validator.events import Reading
from toolcall_validator.families.leaks import LEAKS
from toolcall_validator.fault import Fault, fault, in_order
from toolcall_validator.judgement import Calls, Judgement, count_calls
from toolcall_validator.markers import Markers
from toolcall_validator.rules import args, finish, identity, leak, output, request, schema, stream
from toolcall_validator.schemas import Schemas
from toolcall_validator.shapes.chat import read_chat
from toolcall_validator.shapes.messages import read_messages
from toolcall_validator.shapes.responses import read_responses

Rule = Callable[[Case], Iterator[Fault]]
RULES: tuple[Rule, ...] = (
    request.broken_schema,
    stream.sibling_lost,
    stream.index_reused,
    stream.call_duplicated,
    stream.name_resent,
    stream.null_identity,
    stream.empty_identity,
    stream.null_list,
    leak.content,
    leak.reasoning,
    leak.call_swallowed,
    leak.name,
    leak.arguments,
    leak.unparsed_json,
    leak.unclosed_envelope,
    args.json_faults,
    identity.unknown_name,
    schema.violations,
    identity.missing_id,
    identity.duplicate_id,
    identity.family_id,
    finish.none_violated,
    finish.required_violated,
    finish.wrong_function,
    finish.no_call,
    finish.stop_with_call,
    finish.length_hidden,
    finish.missing,
    finish.duplicate,
    finish.usage_missing,
    output.empty,
    output.reasoning_only,
    output.runaway_calls,
    output.degenerate_loop,
    output.unexpected_script,
    output.structured_invalid,
)


class Validator:
    """Judges exchanges, one after the other; keeps compiled schemas between them and nothing else."""

    def __init__(self, schemas: Schemas | None = None) -> None:
        self._schemas = schemas or Schemas()
        self._markers = Markers(LEAKS)

    def validate(self, record: object, *, reference: str | None = None) -> tuple[Fault, ...]:
        """Return the faults of one exchange, most upstream first; never raises.

        ``record`` is an object of the interchange format: ``request`` beside
        ``response`` or ``chunks``, in any of the three shapes. An exchange
        that was not answered, or answered with an error alone, has no faults
        here: whether it was answered is the check ``wire``'s question. All
        choices and all calls are judged, whatever the finish reason.
        ``reference`` is the reference's text for the same prompt.
        """
        return self.judge(record, reference=reference).faults

    def judge(self, record: object, *, reference: str | None = None) -> Judgement:
        """Return the faults as `validate` does, with the counts that metrics are made of; never raises.

        An exchange is not answered when the record holds no answer, an error
        and nothing else, or, for one that is no stream, says itself under
        ``error`` that the request failed.
        """
        fields = json_of(record)
        body = json_of(fields.get("request"))
        chunks = fields.get("chunks")
        streamed = isinstance(chunks, list)
        wrong = bool(fields.get("error"))
        if (not streamed and ("response" not in fields or wrong)) or (wrong and not chunks):
            return Judgement(answered=False, streamed=streamed)
        bodies = chunks if isinstance(chunks, list) else [fields["response"]]
        reading, asked = read_answer(bodies, streamed=streamed), read_request(body)
        if reading.failed:
            return Judgement(answered=False, streamed=streamed)
        found: list[Fault] = []
        alone = len(reading.choices) == 1
        calls, cut = Calls(), False
        for events in reading.choices:
            case = Case(
                asked,
                assemble(events, asked.tools.keys(), streamed=streamed),
                self._schemas,
                self._markers,
                reading.completion_tokens if alone else None,
                reading.usage,
                reading.by_block,
                reference,
            )
            own = [one for rule in RULES for one in rule(case)]
            calls += count_calls(case, own)
            cut = cut or case.answer.finish_reason == "length"
            found.extend(own)
        return Judgement(
            answered=True,
            streamed=streamed,
            faults=in_order(dict.fromkeys(found)),
            calls=calls,
            due=asked.choice in ("required", "named"),
            cut=cut,
            counted=alone and asked.cap is not None and reading.completion_tokens is not None,
            wants_usage=streamed and asked.wants_usage,
            structured=asked.structure is not None,
        )

    def validate_pair(self, plain: object, streamed: object) -> tuple[Fault, ...]:
        """Return ``stream.parity`` when the two answers to one prompt differ in class, else nothing.

        An exchange without an answer has no class, and then there is no
        finding. See `pair_faults`.
        """
        one, other = self.judge(plain), self.judge(streamed)
        return pair_faults(one.outcome, other.outcome) if one.answered and other.answered else ()

    def validate_stream(self, request_body: object, pieces: Iterable[bytes]) -> tuple[Fault, ...]:
        """Return the faults of a streamed answer from its bytes, the same however they were split."""
        chunks, done = chunks_of(pieces)
        return self.validate({"request": request_body, "chunks": chunks, "done": done})


def pair_faults(plain: str, streamed: str) -> tuple[Fault, ...]:
    """Return ``stream.parity`` when the two answers to one prompt differ in class, else nothing.

    The class is `Judgement.outcome`. One pair can differ by chance at a
    temperature above 0: `stream_parity` over many pairs is the measure.
    """
    if plain == streamed:
        return ()
    return (fault("stream.parity", detail=f"plain {plain}, streamed {streamed}"),)


def chunks_of(pieces: Iterable[bytes]) -> tuple[list[Any], bool]:
    """Return the parsed chunks of a stream and whether ``[DONE]`` came; what is no JSON is ``None``."""
    decoder = SSEDecoder()
    events: list[WireEvent] = [event for piece in pieces for event in decoder.feed(piece)]
    texts = [event.data.strip() for event in events + decoder.close()]
    chunks = [parse_json(text)[0] for text in texts if text != "[DONE]"]
    return chunks, "[DONE]" in texts


def read_answer(bodies: Sequence[object], *, streamed: bool) -> Reading:
    """Return what an answer says, in the shape that it shows; chat completions when in doubt."""
    for body in bodies:
        fields = json_of(body)
        kind = fields.get("type")
        name = kind if isinstance(kind, str) else ""
        if name.startswith("response.") or fields.get("object") == "response":
            return read_responses(bodies, streamed=streamed)
        if name in ("message", "message_start") or name.startswith("content_block"):
            return read_messages(bodies, streamed=streamed)
        if "choices" in fields:
            break
    return read_chat(bodies, streamed=streamed)


def validate(record: object, *, reference: str | None = None) -> tuple[Fault, ...]:
    """Return the faults of one exchange; see `Validator.validate`, which keeps compiled schemas."""
    return Validator().validate(record, reference=reference)
