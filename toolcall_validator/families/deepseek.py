"""DeepSeek: JSON behind special tokens (R1, V3, V3.1), and DSML tags (V3.2, V4).

Source: the templates of DeepSeek-V3, R1 and V3.1, the published encoding of
V3.2, and vLLM's ``deepseek_v3``, ``deepseek_v31``, ``deepseek_v32`` and
``deepseek_v4`` parsers. A completion may hold any of the forms::

    <｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜>

    <｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Oslo"}
    ```<｜tool▁call▁end｜>

    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>
    </｜DSML｜invoke>
"""

# ruff: noqa: RUF001, RUF002 - the model's own signs

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcall_validator.families.json_body import first_of, read_body
from toolcall_validator.families.layout import Layout
from toolcall_validator.families.parsed import RawCall, Trouble
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import arguments_of, bare, thought
from toolcall_validator.families.section import Section
from toolcall_validator.families.tagged import Tags

CALLS, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, SEPARATOR, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
FUNCTIONS, FUNCTIONS_END = "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"
TOOLS, TOOLS_END = "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"
INVOKE, INVOKE_END = '<｜DSML｜invoke name="', "</｜DSML｜invoke>"
_FENCED = re.compile(r"function<｜tool▁sep｜>(?P<name>[^\n`<]*)\n```json\n")
_TAGS = Tags(
    re.compile(r'<｜DSML｜parameter name="(?P<key>[^"<]*)"(?: string="(?P<string>true|false)")?>'),
    "</｜DSML｜parameter>",
    INVOKE_END,
    (FUNCTIONS_END, TOOLS_END, INVOKE),
)
_NAME = re.compile(r'(?P<name>[^"<>\n]*)(?:">)?')


def _read_call(reading: Reading, start: int) -> int:
    text, at = reading.text, start + len(CALL)
    fenced = _FENCED.match(text, at)
    stop = first_of(text, at, (SEPARATOR, CALL_END, CALL, CALLS_END))
    name = text[at:stop].strip() if fenced is None else fenced["name"].strip()
    troubles = () if name else (Trouble.NO_NAME,)
    if not text.startswith(SEPARATOR, stop):
        closed = text.startswith(CALL_END, stop)
        end = stop + len(CALL_END) * closed
        cut = () if closed else (Trouble.UNCLOSED,)
        reading.add(RawCall(name, "", None, (start, end)), *troubles, Trouble.NO_ARGUMENTS, *cut)
        return end
    at = stop + len(SEPARATOR) if fenced is None else fenced.end()
    body = read_body(text, at, CALL_END if fenced is None else f"```{CALL_END}", (CALL, CALLS_END))
    call = RawCall(name, text[body.start : body.end], None, (start, body.next))
    reading.add(call, *troubles, *body.troubles)
    return body.next


def _read_invoke(reading: Reading, start: int) -> int:
    name = _NAME.match(reading.text, start + len(INVOKE))
    end = start + len(INVOKE) if name is None else name.end()
    return _TAGS.read(reading, start, end, "" if name is None else name["name"].strip())


_TOKENS = Section({CALLS: CALLS_END}, CALL, _read_call)
_DSML = Section({FUNCTIONS: FUNCTIONS_END, TOOLS: TOOLS_END}, INVOKE, _read_invoke)


def _read(reading: Reading, found: re.Match[str]) -> int:
    section = _TOKENS if found[0] in (CALLS, CALL) else _DSML
    return section.read(reading, found)


LAYOUT = Layout(
    re.compile("|".join(map(re.escape, (CALLS, CALL, FUNCTIONS, TOOLS, INVOKE)))),
    _read,
    ("<｜end▁of▁sentence｜>",),
    (CALLS_END, CALL_END, SEPARATOR, FUNCTIONS_END, TOOLS_END, INVOKE_END),
)


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn as V3.1 writes it."""
    written = [f"{CALL}{call.name}{SEPARATOR}{call.arguments}{CALL_END}" for call in calls]
    return _turn(content, reasoning, f"{CALLS}{''.join(written)}{CALLS_END}" if calls else "")


def render_fenced(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn as V3 and R1 write it."""
    written = [
        f"{CALL}function{SEPARATOR}{call.name}\n```json\n{call.arguments}\n```{CALL_END}" for call in calls
    ]
    lines = "\n".join(written)
    return _turn(content, reasoning, f"{CALLS}{lines}{CALLS_END}" if calls else "")


def render_dsml(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn as V3.2 writes it.

    Raises:
        UsageError: the arguments of a call are not a JSON object.
    """
    written = "\n".join(f'{INVOKE}{call.name}">\n{_parameters(call)}\n{INVOKE_END}' for call in calls)
    return _turn(content, reasoning, f"\n\n{FUNCTIONS}\n{written}\n{FUNCTIONS_END}" if calls else "")


def _parameters(call: RawCall) -> str:
    return "\n".join(
        f'<｜DSML｜parameter name="{key}" string="{str(isinstance(value, str)).lower()}">'
        f"{bare(value)}</｜DSML｜parameter>"
        for key, value in arguments_of(call, "deepseek_dsml").items()
    )


def _turn(content: str, reasoning: str, section: str) -> str:
    return thought(reasoning, "<think>", "</think>") + content + section
