"""What a fault of tool calls may look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolcall_validator.asked import Asked
from toolcall_validator.families import FORMATS, LEAKS
from toolcall_validator.schemas import Schema, Schemas

FOREIGN = "的确如此"
"""Letters of a script that prompts in others do not explain."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One answer about to be spoiled.

    ``family`` is the replica's raw format, ``raw`` what the model wrote (empty
    before it has written), ``streamed`` how the answer is delivered.
    """

    asked: Asked
    schemas: Schemas
    family: str
    raw: str = ""
    streamed: bool = False

    @property
    def marker(self) -> str:
        """A marker of the family that no answer may show."""
        return LEAKS[FORMATS[self.family].leaks][1]

    def parameters(self, name: str) -> Any:
        """The parameters schema of a declared tool; ``None`` when there is none."""
        tool = self.asked.tools.get(name)
        return None if tool is None else tool.parameters

    def schema(self, name: str) -> Schema | None:
        """The compiled schema of a declared tool; ``None`` when anything fits."""
        parameters = self.parameters(name)
        if parameters in (None, {}):
            return None
        compiled = self.schemas.get(parameters)
        return None if compiled.broken else compiled
