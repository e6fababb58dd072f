"""An endpoint that calls tools as it is told to, over payloads of the real API's shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.toolcalls.part import ToolCallsPart
from probes.toolcall_suite.loading import load_suite
from probes.toolcall_suite.prompt import Due, ToolPrompt
from ringtrue.interchange import from_record
from ringtrue.payload import to_body
from ringtrue.records import Attempt, EndpointSpec, Exchange, Failure, Finding, Observation, Request, State
from tests.unit.evals.tiny import ACME, TinyReference, still_clock
from toolcall_validator.families import RawCall, render

ARGUMENTS: Mapping[str, Any] = {
    "get_weather": {"city": "Oslo"},
    "get_time": {"city": "Lima"},
    "convert_money": {"amount": 25.5, "from": "EUR", "to": "JPY"},
    "book_table": {"restaurant": "Zum Anker", "guest": {"name": "Berg", "party": 4}},
    "plan_trip": {"stops": [{"place": "Bergen", "nights": 2}]},
    "tag_photo": {"photo": "IMG_0412", "tags": ["fog"]},
    "set_lamp": {"room": "hall", "state": "off", "level": None},
    "find_flight": {"origin": "OSL", "destination": "LIS", "day": "3 May", "back": None},
    "list_alarms": {},
    "ping": {},
    "undo": {},
    "draw_line": {"start": {"x": 0, "y": 0}, "end": {"x": 3.5, "y": -2}},
    "org_chart": {"name": "Sales", "teams": [{"name": "North"}]},
    "open_ticket": {"number": "00731", "priority": 2},
    "order_parts": {"number": "004417", "count": 3},
    "set_timer": {"minutes": 5.0},
    "move_arm": {"position": [1, 0.5, -2]},
    "paint_pixel": {"color": [255, 128, 0]},
    "send_mail": {"to": ["ida@example.org"], "subject": "Keys", "body": "Under the mat."},
    "search_books": {"query": "bees", "limit": 10},
    "pay": {"method": {"card": "4000"}, "amount": 12.4},
    "store_labels": {"labels": {"weight": "2kg"}},
    "rate_film": {"title": "Nordlys", "stars": 4.5},
    "create_event": {"title": "Dinner", "when": {"date": "9 June"}},
    "run_query": {"sql": "select count(*) from birds"},
    "write_file": {"path": "note.txt", "text": 'He said "no"'},
    "water_plants": {"zone": 2},
    "get_user": {"id": "18"},
    "toggle": {"feature": "beta", "enabled": True},
    "measure_length": {"metres": 5.0},
    "matrix_sum": {"rows": [[1, 2], [3, 4]]},
    "translate": {"text": "good morning", "to": "de"},
}
JSON: Mapping[str, Any] = {
    "tools-json-city": {"city": "Lima", "country": "Peru"},
    "tools-json-list": {"birds": ["wren"]},
    "tools-json-enum": {"answer": "cold"},
    "tools-json-nested": {"name": "Ida", "address": {"street": "Low Lane", "number": 4}},
    "tools-json-defs": {"a": {"x": 0, "y": 0}, "b": {"x": 1, "y": 1}},
    "tools-json-null": {"author": None},
    "tools-json-any": {"colour": "green"},
}
SUITE = {prompt.id: prompt for prompt in load_suite()}


class ToolReference(TinyReference):
    """The tiny model with a template that writes tools, in Hermes' words; ``drops`` leaves them out."""

    drops = False

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[int, ...]:
        rules = f"<tool_call>{json.dumps(list(tools))}</tool_call>" if tools and not self.drops else ""
        return (256, *self.encode(rules + json.dumps(list(messages))), 257)


class Dropping(ToolReference):
    """Its own template writes no tools."""

    drops = True


@dataclass(frozen=True)
class Said:
    """What the model wrote, and what the server made of it where that is another thing."""

    calls: tuple[tuple[str, str], ...] = ()
    content: str = ""
    finish: str | None = None
    raw: str | None = None

    def raw_text(self) -> str:
        if self.raw is not None:
            return self.raw
        return render("hermes", [RawCall(name, arguments) for name, arguments in self.calls], self.content)


Say = Callable[[Request], Said]


def prompt_of(request: Request) -> ToolPrompt:
    return SUITE[request.id.rpartition("/")[0]]


def sound(request: Request) -> Said:
    """What is due, as the schemas want it."""
    prompt = prompt_of(request)
    if prompt.due is Due.JSON:
        return Said(content=json.dumps(JSON[prompt.id]))
    if prompt.due is Due.NO_CALL:
        return Said(content="It rains there today.")
    return Said(tuple((name, json.dumps(ARGUMENTS[name])) for name in prompt.tools))


@dataclass(eq=False)
class Talking:
    """Answers in the shape of chat completions; ``say`` decides what."""

    say: Say = sound
    spec: EndpointSpec = ACME
    reference: ToolReference = field(default_factory=ToolReference)
    renders: Callable[[Request], tuple[int, ...]] | None = None
    shows_tokens: bool = True
    shows_ids: bool = True
    fail: Callable[[Request, int], Failure | None] = lambda _request, _turn: None
    rewrite: Callable[[Request, dict[str, Any]], None] = lambda _request, _body: None
    sent: list[Request] = field(default_factory=list)

    async def send(self, request: Request) -> Exchange:
        self.sent.append(request)
        body = to_body(request, "tiny")
        record: dict[str, Any] = {"id": request.id, "request": body, "endpoint": self.spec.name}
        failure = self.fail(request, len(self.sent))
        if failure is not None:
            exchange = from_record(record | {"error": None})
            return replace(exchange, request=request, error=failure, attempts=(Attempt(1, 0.0, failure),))
        ids = request.prompt_token_ids or self._rendered(request)
        said = Said(content="Yes.") if request.id.endswith("/bare") else self.say(request)
        raw = request.messages is None
        tokens = self.reference.encode(said.raw_text())
        usage = {"prompt_tokens": len(ids), "completion_tokens": min(len(tokens), 200)}
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": said.finish or ("tool_calls" if said.calls else "stop"),
        }
        calls = [
            {
                "index": at,
                "id": f"call_{at}",
                "type": "function",
                "function": {"name": name, "arguments": text},
            }
            for at, (name, text) in enumerate(said.calls)
        ]
        if raw:
            choice |= {"text": said.raw_text(), "finish_reason": "stop"}
        elif request.stream:
            choice["delta"] = {"role": "assistant", "content": said.content or None} | (
                {"tool_calls": calls} if calls else {}
            )
        else:
            for call in calls:
                del call["index"]
            choice["message"] = {"role": "assistant", "content": said.content or None} | (
                {"tool_calls": calls} if calls else {}
            )
        answer: dict[str, Any] = {"id": "x", "model": "tiny", "choices": [choice], "usage": usage}
        self.rewrite(request, answer)
        if request.stream:
            record |= {"chunks": [answer], "done": True}
        else:
            record["response"] = answer
        exchange = from_record(record)
        return replace(
            exchange,
            request=request,
            prompt_token_ids=ids if self.shows_ids else None,
            token_ids=tokens if raw or self.shows_tokens else None,
            attempts=(Attempt(1, 0.0, None),),
        )

    def _rendered(self, request: Request) -> tuple[int, ...]:
        if self.renders is not None:
            return self.renders(request)
        return self.reference.render(request.messages or (), request.tools)

    async def aclose(self) -> None:
        return None


@dataclass
class Night:
    """One examination and all that came of it."""

    findings: tuple[Finding, ...]
    numbers: dict[str, Observation]
    asker: Asker

    @property
    def finding(self) -> Finding:
        return self.findings[0]


def part(reference: ToolReference | None = None, **settings: Any) -> ToolCallsPart:
    return ToolCallsPart(reference or ToolReference(), **({"seed": 0, "night": 1, "count": 24} | settings))


async def examine(endpoint: Talking, *, of: ToolCallsPart | None = None, logprobs: State = State.OK) -> Night:
    of = of or part(endpoint.reference)
    numbers: dict[str, Observation] = {}

    async def emit(observations: Any) -> None:
        numbers.update({one.metric: one for one in observations})

    asker = Asker(
        endpoint,  # type: ignore[arg-type]
        Scribe(endpoint.spec.name, "r1", of.name),
        seed=0,
        clock=still_clock(),
        emit=emit,
        on_progress=lambda _: None,
        record=None,
    )
    findings = await of.examine(asker, Known(20, True, None, logprobs))
    return Night(findings, numbers, asker)
