"""Chats that tell one template from another, each made to show something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import orjson

from tokenizer_checks.templates.chat import Chat


@dataclass(frozen=True, slots=True)
class Fixture:
    """A chat, and what it shows."""

    name: str
    purpose: str
    chat: Chat


def fixtures() -> tuple[Fixture, ...]:
    """Return all fixtures, in the order of ``fixtures.jsonl``; the names are unique."""
    data = resources.files("tokenizer_checks.templates").joinpath("fixtures.jsonl").read_bytes()
    return tuple(_fixture(orjson.loads(line)) for line in data.splitlines())


def _fixture(row: Mapping[str, Any]) -> Fixture:
    chat = Chat(
        messages=tuple(row["messages"]),
        tools=tuple(row["tools"]) if "tools" in row else None,
        generation_prompt=row.get("generation_prompt", True),
        continue_final=row.get("continue_final", False),
        options=row.get("options", {}),
    )
    return Fixture(row["name"], row["purpose"], chat)
