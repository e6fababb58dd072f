"""The common harness: what the model wrote, read by our own parsers, beside what the server made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ringtrue.endpoint import Reference
from ringtrue.interchange import to_record
from ringtrue.records import Exchange, Party
from toolcall_validator.answer import Answer, assemble
from toolcall_validator.asked import Tool, read_request
from toolcall_validator.families import Answered, blame, parse
from toolcall_validator.fault import Fault
from toolcall_validator.schemas import Schemas, TooCostlyError
from toolcall_validator.strict_json import parse_strict
from toolcall_validator.validate import read_answer

TOLD_BY_RAW_TEXT = ("leak.", "args.", "name.", "schema.")
"""Codes whose party the raw text decides: ids, finish reasons, usage and choices are not in it."""


@dataclass(frozen=True, slots=True)
class Harness:
    """How raw text is read: ``tool_format`` names the model's format, ``None`` where nobody knows it."""

    reference: Reference
    schemas: Schemas
    tool_format: str | None

    def raw_text(self, exchange: Exchange | None) -> str | None:
        """Return what the model generated, special tokens included.

        ``None`` where the server does not say which tokens it generated: text
        has lost what a parser or a detokenizer took out of it.
        """
        if (
            exchange is None
            or exchange.error is not None
            or not exchange.token_ids
            or self.tool_format is None
        ):
            return None
        return self.reference.decode(exchange.token_ids)

    def party(self, raw_text: str, exchange: Exchange) -> Party | None:
        """Return who spoiled the answer.

        ``None`` where raw text and answer are right and agree, or nobody knows the format.
        """
        if self.tool_format is None:
            return None
        record = to_record(exchange)
        asked = read_request(record["request"])
        answer = _answer(record)
        declared = {
            name: tool.parameters
            for name, tool in asked.tools.items()
            if isinstance(tool.parameters, Mapping)
        }

        def fits(name: str, arguments: str) -> bool:
            return name in asked.tools and self._fits(asked.tools[name], arguments)

        return blame(
            parse(self.tool_format, raw_text, declared),
            [Answered(call.name.value, call.arguments.value) for call in answer.calls],
            fits,
            answer.content.value + answer.reasoning.value,
        )

    def _fits(self, tool: Tool, arguments: str) -> bool:
        if tool.parameters in (None, {}):
            return True
        schema = self.schemas.get(tool.parameters)
        try:
            return bool(schema.broken) or schema.accepts(parse_strict(arguments).value)
        except TooCostlyError:
            return True


def with_party(faults: Sequence[Fault], party: Party | None) -> tuple[Fault, ...]:
    """Return the faults with the party that the raw text named, where it has a say in theirs."""
    if party is None:
        return tuple(faults)
    return tuple(
        replace(found, party=party) if found.code.startswith(TOLD_BY_RAW_TEXT) else found for found in faults
    )


def open_to_blame(faults: Sequence[Fault]) -> bool:
    """Tell whether the raw text could say more about who is at fault."""
    return any(found.code.startswith(TOLD_BY_RAW_TEXT) for found in faults)


def _answer(record: Mapping[str, Any]) -> Answer:
    """Return the first answer of a recorded exchange, assembled as the validator does it."""
    streamed = "chunks" in record
    reading = read_answer(record["chunks"] if streamed else [record.get("response")], streamed=streamed)
    tools = read_request(record["request"]).tools
    return assemble(reading.choices[0] if reading.choices else (), tools.keys(), streamed=streamed)
