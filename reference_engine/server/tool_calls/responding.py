"""The answer to a chat that calls tools, or that a fault of tool calls spoils."""

from __future__ import annotations

import random
from typing import Any

from reference_engine.server.answering import Answer
from reference_engine.server.answers import Envelope
from reference_engine.server.bodies import ChatBody
from reference_engine.server.tool_calls import wire
from reference_engine.server.tool_calls.choosing import asked_of
from reference_engine.server.tool_calls.parsing import delivered, raw_text
from reference_engine.server.tool_calls.scene import Scene
from toolcall_validator.schemas import Schemas


class ToolAnswers:
    """Turns whole answers into bodies and chunks, through the parser and the faults of the session."""

    def __init__(self, schemas: Schemas, rng: random.Random) -> None:
        self._schemas = schemas
        self._rng = rng

    def body(self, body: ChatBody, envelope: Envelope, answer: Answer) -> dict[str, Any]:
        """Return the body of a plain answer."""
        scene = self._scene(body, answer)
        told = delivered(answer, scene.asked, self._rng)
        return wire.whole(body, envelope, answer, answer.prompt.treatment.faults.knobs.delivered(told, scene))

    def chunks(
        self, body: ChatBody, envelope: Envelope, answer: Answer, *, include_usage: bool
    ) -> list[dict[str, Any]]:
        """Return the chunks of a streamed answer."""
        scene, knobs = self._scene(body, answer), answer.prompt.treatment.faults.knobs
        told = knobs.delivered(delivered(answer, scene.asked, self._rng), scene)
        return knobs.streamed(wire.chunks(body, envelope, answer, told, include_usage=include_usage), scene)

    def _scene(self, body: ChatBody, answer: Answer) -> Scene:
        family = answer.prompt.treatment.tool_format
        return Scene(asked_of(body), self._schemas, family, raw_text(answer), body.stream)
