"""One answer, assembled from a plain body or from the events of a stream.

Chat and completions are told apart by their shape (``message`` and ``delta``
against ``text``). Only the choice with index 0 is read: probes ask for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ringtrue.records import Failure, FailureKind, Party, Position, Usage
from ringtrue.wire.logprobs import chat_positions, completion_positions, prompt_positions
from ringtrue.wire.sse import Event
from ringtrue.wire.strict_json import parse_json
from ringtrue.wire.tool_calls import ToolCallAssembler

_DONE = "[DONE]"
_GREATEST_ID = (1 << 31) - 1  # engines keep IDs in 32 bits


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said, as far as it said it.

    Invariants: ``finish_reason`` is what was sent, ``None`` when none was;
    with a ``failure`` everything that could be read is still here.
    ``content_events`` are the positions of the first and the last event of the
    stream that carried text, reasoning or a tool call.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    top_logprobs: tuple[Position, ...] | None = None
    prompt_logprobs: tuple[Position | None, ...] | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    done: bool = False
    content_events: tuple[int, int] | None = None
    failure: Failure | None = None


def assemble_body(body: bytes, *, echo: bool = False) -> Answer:
    """Assemble a plain answer.

    ``echo``: the prompt was asked back, so on the completions route the first
    ``usage.prompt_tokens`` positions belong to it.
    """
    value, failure = parse_json(body)
    assembly = _Assembly()
    if value is not None or failure is None:
        failure = assembly.add(value) or failure
    if failure is None and not assembly.saw_choice:
        failure = _bad_shape("the answer has no choices")
    return assembly.finished(done=True, failure=failure, echo=echo)


def assemble_stream(events: Iterable[Event], *, echo: bool = False) -> Answer:
    """Assemble a stream from all of its events, ``SSEDecoder.close`` included.

    A stream that ends without ``[DONE]`` and without a finish reason is
    truncated, and so is one whose last event is cut; what came before is kept.
    """
    assembly = _Assembly()
    failure: Failure | None = None
    done = False
    for at, event in enumerate(events):
        if event.data.strip() == _DONE:
            done = True
            continue
        value, malformed = parse_json(event.data)
        if value is not None or malformed is None:
            malformed = assembly.add(value, at) or malformed
        failure = failure or malformed
    cut = not done and assembly.finish_reason is None
    if cut and (failure is None or failure.kind in {FailureKind.NOT_JSON, FailureKind.HTML}):
        failure = Failure(
            FailureKind.TRUNCATED, "the stream ended without finish_reason and [DONE]", Party.PROVIDER
        )
    elif failure is None and not assembly.saw_choice:
        failure = _bad_shape("no event of the stream has choices")
    return assembly.finished(done=done, failure=failure, echo=echo)


class _Assembly:
    """The parts of an answer while they come in."""

    def __init__(self) -> None:
        self.saw_choice = False
        self.finish_reason: str | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._streamed_calls = ToolCallAssembler()
        self._plain_calls: tuple[Mapping[str, Any], ...] = ()
        self._positions: list[Position | None] | None = None
        self._prompt_ids: tuple[int, ...] | None = None
        self._ids: list[int] | None = None
        self._prompt_logprobs: object = None
        self._usage: Usage | None = None
        self._model: str | None = None
        self._fingerprint: str | None = None
        self._content_events: tuple[int, int] | None = None

    def add(self, value: object, at: int | None = None) -> Failure | None:
        """Take in a body, or the event at position ``at``; return what is wrong with it."""
        if not isinstance(value, dict):
            return _bad_shape(f"the answer is a JSON {type(value).__name__}, not an object")
        if value.get("error") and not value.get("choices"):
            return Failure(
                FailureKind.SERVER_ERROR,
                f"the server reported an error inside its answer: {error_text(value)}",
                Party.PROVIDER,
            )
        self._model = _string(value.get("model")) or self._model
        self._fingerprint = _string(value.get("system_fingerprint")) or self._fingerprint
        self._usage = _usage(value.get("usage")) or self._usage
        self._add_prompt(value)
        choices = value.get("choices")
        if choices is not None and not isinstance(choices, list):
            return _bad_shape("choices is not a list")
        for choice in choices or ():
            if not isinstance(choice, dict):
                return _bad_shape("a choice is not an object")
            if choice.get("index") in (0, None):
                self._add_choice(choice, at)
        return None

    def _add_choice(self, choice: dict[str, Any], at: int | None) -> None:
        self.saw_choice = True
        self.finish_reason = _string(choice.get("finish_reason")) or self.finish_reason
        self._add_prompt(choice)
        ids = _ids(choice.get("token_ids"))
        if ids is not None:
            self._ids = [*(self._ids or ()), *ids]
        part = choice.get("delta") or choice.get("message")
        message = part if isinstance(part, dict) else {}
        text = _content(message.get("content")) or _string(choice.get("text"))
        reasoning = _string(message.get("reasoning_content")) or _string(message.get("reasoning"))
        self._text.append(text)
        self._reasoning.append(reasoning)
        called = self._add_calls(message.get("tool_calls"), streamed="delta" in choice)
        self._add_logprobs(choice.get("logprobs"))
        if at is not None and (text or reasoning or called):
            self._content_events = (self._content_events[0] if self._content_events else at, at)

    def _add_prompt(self, holder: dict[str, Any]) -> None:
        self._prompt_ids = _ids(holder.get("prompt_token_ids")) or self._prompt_ids
        self._prompt_logprobs = holder.get("prompt_logprobs") or self._prompt_logprobs

    def _add_calls(self, calls: object, *, streamed: bool) -> bool:
        found = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        if streamed:
            for call in found:
                self._streamed_calls.add(call)
        elif found:
            self._plain_calls = tuple(found)
        return bool(found)

    def _add_logprobs(self, logprobs: object) -> None:
        if not isinstance(logprobs, dict):
            return
        found = completion_positions(logprobs) if "tokens" in logprobs else chat_positions(logprobs)
        self._positions = [*(self._positions or ()), *found]

    def finished(self, *, done: bool, failure: Failure | None, echo: bool) -> Answer:
        answer = Answer(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            tool_calls=self._plain_calls or self._streamed_calls.calls(),
            finish_reason=self.finish_reason,
            usage=self._usage,
            prompt_token_ids=self._prompt_ids,
            token_ids=None if self._ids is None else tuple(self._ids),
            prompt_logprobs=prompt_positions(self._prompt_logprobs, self._prompt_ids),
            model=self._model,
            system_fingerprint=self._fingerprint,
            done=done,
            content_events=self._content_events,
            failure=failure,
        )
        if self._positions is None:
            return answer
        split = (self._usage.prompt_tokens or 0) if echo and self._usage else 0
        generated = tuple(position for position in self._positions[split:] if position is not None)
        if self._ids is not None and len(self._ids) == len(generated):
            generated = tuple(map(_with_id, generated, self._ids))
        if not split:
            return replace(answer, top_logprobs=generated)
        return replace(answer, top_logprobs=generated, prompt_logprobs=tuple(self._positions[:split]))


def _with_id(position: Position, token_id: int) -> Position:
    """The position with the ID that the server listed apart from its logprobs."""
    if position.sampled.token_id is not None:
        return position
    return replace(position, sampled=replace(position.sampled, token_id=token_id))


def error_text(value: object) -> str:
    """The message of an error body in the shapes servers use, else ``""``.

    At most 300 characters, all printable: it will stand in terminals and reports.
    """
    if not isinstance(value, dict):
        return ""
    error = value.get("error", value.get("detail", value.get("message")))
    if isinstance(error, list):  # FastAPI: a list of problems, each repeating the input beside its msg
        error = "; ".join(_string(_dict(problem).get("msg")) for problem in error)
    while isinstance(error, dict):
        error = error.get("message", error.get("detail"))
    words = " ".join(str(error).split()) if error else ""
    return "".join(filter(str.isprintable, words))[:300]


def _bad_shape(message: str) -> Failure:
    return Failure(FailureKind.BAD_SHAPE, message, Party.PROVIDER)


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(
        _count(value.get("prompt_tokens")),
        _count(value.get("completion_tokens")),
        _count(value.get("total_tokens")),
        _count(_dict(value.get("prompt_tokens_details")).get("cached_tokens")),
        _count(_dict(value.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _content(value: object) -> str:
    if isinstance(value, list):
        return "".join(_string(part.get("text")) for part in value if isinstance(part, dict))
    return _string(value)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if type(value) is int else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _ids(value: object) -> tuple[int, ...] | None:
    """Token IDs as they stand there; text, booleans and numbers that are no index make none of the list."""
    if isinstance(value, list) and all(type(item) is int and 0 <= item <= _GREATEST_ID for item in value):
        return tuple(value)
    return None
