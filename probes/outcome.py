"""From the bytes of one attempt to an answer, its times, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from probes.failures import Place, failure_of_status
from probes.received import Received
from ringtrue.records import Attempt, EndpointSpec, Exchange, Failure, Request, Timings
from ringtrue.wire import Answer, Event, SSEDecoder, assemble_body, assemble_stream


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended. Before the first attempt: a failure and nothing else."""

    failure: Failure | None
    received: Received | None = None
    answer: Answer = field(default_factory=Answer)
    times: Timings = field(default_factory=lambda: Timings(scheduled=0.0))

    def noting(self, sentence: str) -> Outcome:
        """The same with one more sentence about the failure."""
        if self.failure is None or not sentence:
            return self
        return replace(self, failure=replace(self.failure, message=f"{self.failure.message}. {sentence}"))

    def exchange(
        self,
        request: Request,
        spec: EndpointSpec,
        *,
        at: datetime,
        scheduled: float,
        attempts: tuple[Attempt, ...],
    ) -> Exchange:
        """The record of the whole request, of which this is the last attempt."""
        answer = self.answer
        return Exchange(
            id=request.id,
            endpoint=spec.name,
            requested_model=spec.model,
            request=request,
            at=at,
            timings=replace(self.times, scheduled=scheduled),
            wire=tuple(self.received.chunks) if self.received else (),
            text=answer.text,
            reasoning=answer.reasoning,
            tool_calls=answer.tool_calls,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            prompt_token_ids=answer.prompt_token_ids,
            token_ids=answer.token_ids,
            top_logprobs=answer.top_logprobs,
            prompt_logprobs=answer.prompt_logprobs,
            model=answer.model,
            system_fingerprint=answer.system_fingerprint,
            headers=self.received.headers if self.received else {},
            error=self.failure,
            attempts=attempts,
        )


def read_outcome(received: Received, request: Request, place: Place, *, now: float) -> Outcome:
    """Read what was received. ``now`` is the time of day in seconds since the epoch.

    What the transport met counts more than what the bytes say, except after
    ``[DONE]``: such a stream is whole, whatever became of its connection.
    """
    status = received.status
    if status is None:
        return Outcome(received.failure, received, times=_times(received))
    if not 200 <= status < 300:
        failure = failure_of_status(status, received.headers, received.body, place, now=now)
        return Outcome(failure, received, times=_times(received))
    if _is_stream(received, request):
        events, event_times = _events(received)
        answer = assemble_stream(events, echo=request.echo)
        content = answer.content_events
        times = _times(received, content and (event_times[content[0]], event_times[content[1]]))
    else:
        answer = assemble_body(received.body, echo=request.echo)
        # A plain answer is there when its last byte is.
        whole = (received.chunks[-1].at,) * 2 if received.chunks and answer.failure is None else None
        times = _times(received, whole)
    streamed_whole = answer.done and answer.content_events is not None
    broken = None if streamed_whole else received.failure
    if broken is None and (said := answer.failure) is not None:
        broken = place.failure(said.kind, said.message, party=said.party)
    return Outcome(broken and replace(broken, status=status), received, answer, times)


def _is_stream(received: Received, request: Request) -> bool:
    content_type = received.headers.get("content-type", "")
    if "event-stream" in content_type:
        return True
    # Some gateways forget the content type, and some answer a stream with plain JSON.
    start = received.body[:64].lstrip(b"\xef\xbb\xbf\r\n ")
    return request.stream and start.startswith((b"data:", b"event:", b":", b"id:", b"retry:"))


def _events(received: Received) -> tuple[list[Event], list[float]]:
    decoder = SSEDecoder()
    events: list[Event] = []
    times: list[float] = []
    for chunk in received.chunks:
        found = decoder.feed(chunk.data)
        events += found
        times += [chunk.at] * len(found)
    rest = decoder.close()
    return events + rest, times + [received.chunks[-1].at] * len(rest) if received.chunks else []


def _times(received: Received, content: tuple[float, float] | None = None) -> Timings:
    first, last = content or (None, None)
    return Timings(
        scheduled=received.sent,
        sent=received.sent,
        first_byte=received.chunks[0].at if received.chunks else None,
        first_content=first,
        last_content=last,
        end=received.end,
    )
