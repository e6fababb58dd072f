"""The table of faults of tool calls: every code that a server can cause, and how.

``CODE`` spoils what is delivered, behind the parser: the raw text stays right,
so the fault is the provider's. ``raw:CODE`` has the model write it: the raw text
is wrong already, and the parser delivers what it finds. ``choice.*`` are faults
of the decision what to call; a completion, which has no ``tool_choice``, shows none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from reference_engine.server.tool_calls import answer_faults, call_faults
from reference_engine.server.tool_calls.answer_faults import RUNAWAY
from reference_engine.server.tool_calls.decision import KNOBS as DECISIONS
from reference_engine.server.tool_calls.delivered import Delivered
from reference_engine.server.tool_calls.scene import Scene
from reference_engine.server.tool_calls.stream_faults import STREAM_FAULTS, Chunk
from reference_engine.server.tool_calls.value_faults import schema_faults
from ringtrue.errors import ConfigError, UsageError
from toolcall_validator.asked import read_request
from toolcall_validator.families import RawCall, parse, render
from toolcall_validator.schemas import Schemas

CallFault = Callable[[RawCall, Scene], RawCall]
AnswerFault = Callable[[Delivered, Scene], Delivered]
RAW = "raw:"

CALL_FAULTS: dict[str, CallFault] = {
    "leak.name": call_faults.leaked_name,
    "leak.arguments": call_faults.leaked_arguments,
    "args.truncated_head": call_faults.truncated_head,
    "args.truncated_tail": call_faults.truncated_tail,
    "args.value_lost": call_faults.value_lost,
    "args.duplicated": call_faults.duplicated,
    "args.empty_stream": call_faults.empty_stream,
    "args.double_encoded": call_faults.double_encoded,
    "args.nested_double_encoded": call_faults.nested_double_encoded,
    "args.not_json": call_faults.not_json,
    "args.not_object": call_faults.not_object,
    "args.nan": call_faults.not_a_number,
    "args.duplicate_key": call_faults.duplicate_key,
    "name.unknown": call_faults.unknown_name,
    **schema_faults(),
    "output.unexpected_script": call_faults.foreign_arguments,
}
"""Faults of each call by itself."""

ANSWER_FAULTS: dict[str, AnswerFault] = {
    "leak.content": answer_faults.leak_content,
    "leak.reasoning": answer_faults.leak_reasoning,
    "leak.call_swallowed": answer_faults.call_swallowed,
    "leak.unparsed_json": answer_faults.unparsed_json,
    "leak.unclosed": answer_faults.unclosed,
    "id.missing": answer_faults.missing_id,
    "id.duplicate": answer_faults.duplicate_id,
    "id.family_format": answer_faults.family_id,
    "finish.no_call": answer_faults.no_call,
    "finish.stop_with_call": answer_faults.stop_with_call,
    "finish.length_hidden": answer_faults.length_hidden,
    "finish.missing": answer_faults.missing_finish,
    "output.empty": answer_faults.empty,
    "output.reasoning_only": answer_faults.reasoning_only,
    "output.runaway_calls": answer_faults.runaway_calls,
    "output.degenerate_loop": answer_faults.degenerate_loop,
    "output.unexpected_script": answer_faults.foreign_script,
    "output.structured_invalid": answer_faults.structured_invalid,
}
"""Faults of the whole answer."""

_RUNAWAY = "output.runaway_calls"
_NEVER_RAW = frozenset({"leak.name", "leak.arguments", "args.empty_stream"})
_BREAK_JSON = frozenset(
    {
        "args.truncated_head",
        "args.truncated_tail",
        "args.duplicated",
        "args.double_encoded",
        "args.not_json",
        "args.not_object",
        "args.nan",
        "args.duplicate_key",
    }
)

KNOBS: tuple[str, ...] = tuple(dict.fromkeys((*DECISIONS, *CALL_FAULTS, *ANSWER_FAULTS, *STREAM_FAULTS)))
"""Every code that has a knob."""

RAW_KNOBS: tuple[str, ...] = tuple(code for code in (*CALL_FAULTS, _RUNAWAY) if code not in _NEVER_RAW)
"""The codes that the model can be made to write."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """The faults of tool calls that a replica has, by where they act."""

    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what has no knob.

        Raises:
            ConfigError: names those that have one.
        """
        for name in self.names:
            code = name.removeprefix(RAW)
            known = RAW_KNOBS if name.startswith(RAW) else KNOBS
            if code not in known:
                raise ConfigError(
                    f"there is no fault {name!r}",
                    where="tool_fault",
                    remedy=f"Known are {', '.join(KNOBS)}; behind {RAW} also {', '.join(RAW_KNOBS)}",
                )

    def __bool__(self) -> bool:
        """Whether there is any fault at all."""
        return bool(self.names)

    def require_writable(self, family: str) -> None:
        """Make sure that the format can hold what the model is to write.

        Raises:
            ConfigError: the format writes each parameter by itself, or puts the
                arguments into another object whose brackets would stand in for lost ones.
        """
        for code in self._behind(RAW):
            if code in _BREAK_JSON and not _holds(family, CALL_FAULTS[code]):
                raise ConfigError(
                    f"the format {family} cannot hold {RAW}{code}",
                    where="tool_fault",
                    remedy=f"Choose another format, such as kimi, or the delivered fault {code}",
                )

    @property
    def decisions(self) -> frozenset[str]:
        """The faults of the decision what to call."""
        return frozenset(self.names) & frozenset(DECISIONS)

    def written(self, calls: Sequence[RawCall], scene: Scene) -> tuple[RawCall, ...]:
        """Return the calls as the model writes them."""
        spoiled = tuple(calls)
        for name in self._behind(RAW):
            if name == _RUNAWAY:
                spoiled = spoiled[:1] * RUNAWAY
            else:
                spoiled = tuple(CALL_FAULTS[name](call, scene) for call in spoiled)
        return spoiled

    def delivered(self, told: Delivered, scene: Scene) -> Delivered:
        """Return the answer as it is delivered."""
        for name in self.names:
            if name in CALL_FAULTS:
                told = replace(told, calls=tuple(CALL_FAULTS[name](call, scene) for call in told.calls))
            # Of a code that has both a call and a text to spoil, the call is enough.
            if name in ANSWER_FAULTS and not (name in CALL_FAULTS and told.calls):
                told = ANSWER_FAULTS[name](told, scene)
        return told

    def streamed(self, chunks: list[Chunk], scene: Scene) -> list[Chunk]:
        """Return the chunks as they are sent."""
        for name in self.names:
            if name in STREAM_FAULTS:
                chunks = STREAM_FAULTS[name](chunks, scene)
        return chunks

    def _behind(self, prefix: str) -> Iterable[str]:
        return (name.removeprefix(prefix) for name in self.names if name.startswith(prefix))


def _holds(family: str, spoil: CallFault) -> bool:
    """Tell whether broken arguments come out of the format as they went in."""
    scene = Scene(read_request({}), Schemas(), family)
    broken = spoil(RawCall("f", '{"k": "v"}'), scene)
    try:
        read = parse(family, render(family, [broken]))
    except UsageError:
        return False
    return [call.arguments for call in read.calls] == [broken.arguments]
