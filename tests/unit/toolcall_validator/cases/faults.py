"""Every code but those of arguments."""

from __future__ import annotations

from tests.unit.toolcall_validator.exchanges import (
    OK,
    Sample,
    call,
    delta,
    more,
    opening,
    plain,
    stream,
    tool,
)

BERGEN = '{"place": "Bergen"}'
KIMI = {"model": "moonshotai/Kimi-K2"}
NAMED = {"tool_choice": {"type": "function", "function": {"name": "ping"}}}
JSON_CALL = '{"name": "weather", "arguments": {"place": "Oslo"}}'
FULL = {"prompt_tokens": 9, "completion_tokens": 32, "total_tokens": 41}
FORMAT = {
    "tools": [],
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "r", "schema": {"type": "object", "required": ["a"]}},
    },
}


def said(text: str, *calls: object, **asked: object) -> dict[str, object]:
    return plain(*calls, content=text, asked=asked)  # type: ignore[arg-type]


LEAKS = (
    Sample(
        "leak-kimi", said("<|tool_call_begin|>functions.ping:0<|tool_call_end|>", call()), ("leak.content",)
    ),
    Sample("leak-hermes-closed", said(f"<tool_call>\n{JSON_CALL}\n</tool_call>"), ("leak.content",)),
    Sample(
        "leak-qwen",
        said("<function=weather>\n<parameter=place>\nOslo\n</parameter>\n</function>"),
        ("leak.content",),
    ),
    Sample("leak-harmony", said("<|channel|>commentary to=functions.ping<|message|>{}"), ("leak.content",)),
    Sample("leak-mistral", said("[TOOL_CALLS]" + f"[{JSON_CALL}]"), ("leak.content",)),
    Sample("leak-closing-only", said("Let me look.</tool_call>", call()), ("leak.content",)),
    Sample("leak-pythonic", said('[weather(place="Oslo")]'), ("leak.content",)),
    Sample("leak-thinking", plain(content="</think>It rains.", reasoning="Oslo."), ("leak.content",)),
    Sample("leak-unlisted", plain(call('{"place": "<|\\"|>Oslo"}')), ("leak.arguments",)),
    Sample("leak-escaped", plain(call('{"place": "Oslo\\u003c/arg_value\\u003e"}')), ("leak.arguments",)),
    Sample("leak-no-table", said("Let me <|tool_call>call:ping{}", call()), ("leak.content",)),
    Sample(
        "leak-across-chunks",
        stream(delta(content="Sure <|tool_call_"), delta(content="begin|>"), opening(OK)),
        ("leak.content",),
    ),
    Sample(
        "leak-reasoning",
        plain(call(), reasoning_content="so <|tool_calls_section_begin|>"),
        ("leak.reasoning",),
    ),
    Sample(
        "leak-reasoning-stream",
        stream(delta(reasoning="so <|tool_calls_"), delta(reasoning="section_begin|>"), opening(OK)),
        ("leak.reasoning",),
    ),
    Sample(
        "swallowed",
        plain(reasoning_content=f"Now <tool_call>{JSON_CALL}</tool_call>"),
        ("leak.call_swallowed",),
    ),
    Sample(
        "swallowed-open", plain(reasoning_content=f"Now <tool_call>{JSON_CALL}"), ("leak.call_swallowed",)
    ),
    Sample("swallowed-json", plain(reasoning_content=f"I call {JSON_CALL}"), ("leak.call_swallowed",)),
    Sample("leak-name", plain(call(name="weather<|channel|>json")), ("leak.name",)),
    Sample(
        "leak-name-stream",
        stream(opening(OK, "weather<|chan"), opening(None, "nel|>json", identity=None)),
        ("stream.null_identity", "leak.name"),
    ),
    Sample("leak-arguments", plain(call('{"place": "Oslo</arg_value>"}')), ("leak.arguments",)),
    Sample("leak-behind-arguments", plain(call(OK + "<|tool_call_end|>")), ("leak.arguments",)),
    Sample(
        "leak-arguments-stream",
        stream(opening('{"place": "Oslo<|tool_'), more('call_end|>"}')),
        ("leak.arguments",),
    ),
    Sample("json-in-content", said(JSON_CALL), ("leak.unparsed_json",)),
    Sample(
        "json-parameters",
        said('{"name": "weather", "parameters": {"place": "Oslo"}}'),
        ("leak.unparsed_json",),
    ),
    Sample("json-fenced", said(f"```json\n{JSON_CALL}\n```"), ("leak.unparsed_json",)),
    Sample("json-list", said(f"I will look. [{JSON_CALL}]"), ("leak.unparsed_json",)),
    Sample(
        "json-whole-message",
        said('{"tool_calls": [{"function": ' + JSON_CALL + "}]}"),
        ("leak.unparsed_json",),
    ),
    Sample(
        "json-stream",
        stream(delta(content=JSON_CALL[:9]), delta(content=JSON_CALL[9:]), finish="stop"),
        ("leak.unparsed_json",),
    ),
    Sample("unclosed", said('<tool_call>{"name": "weather", "argum'), ("leak.unclosed",)),
    Sample(
        "unclosed-second", said("<tool_call>{}</tool_call> <tool_call>{"), ("leak.content", "leak.unclosed")
    ),
    Sample(
        "unclosed-reasoning",
        plain(reasoning="<|tool_call_begin|>functions.ping:0"),
        ("leak.unclosed", "output.reasoning_only"),
    ),
    Sample(
        "required-and-unclosed",
        plain(content='<tool_call>\n{"arguments": [1, 2', finish="length", asked={"tool_choice": "required"}),
        ("leak.unclosed", "choice.required_violated"),
    ),
)

STREAMS = (
    Sample("gap-at-the-start", stream(opening(OK, index=1)), ("stream.sibling_lost",)),
    Sample(
        "gap-inside",
        stream(opening(OK), opening(BERGEN, identity="call_b", index=2)),
        ("stream.sibling_lost",),
    ),
    Sample("one-index", stream(opening(OK), opening(BERGEN, identity="call_b")), ("stream.index_reused",)),
    Sample(
        "one-index-other-tool",
        stream(opening(OK), opening("{}", "ping", identity=None)),
        ("stream.index_reused", "stream.null_identity", "id.missing"),
    ),
    Sample(
        "one-index-no-ids",
        stream(opening(OK, identity="a"), opening(BERGEN, identity="a", index=0)),
        ("stream.name_resent", "args.not_json"),
    ),
    Sample(
        "one-call-on-three",
        stream(opening(OK), opening(OK, identity="call_b", index=1), opening(OK, identity="call_c", index=2)),
        ("stream.call_duplicated",),
    ),
    Sample(
        "name-again",
        stream(opening('{"place":'), more('"Oslo"}', function={"name": "weather"})),
        ("stream.name_resent",),
    ),
    Sample("null-id", stream(opening('{"place":'), more('"Oslo"}', id=None)), ("stream.null_identity",)),
    Sample(
        "null-name",
        stream(opening('{"place":'), more('"Oslo"}', function={"name": None})),
        ("stream.null_identity",),
    ),
    Sample("empty-id", stream(opening('{"place":'), more('"Oslo"}', id="")), ("stream.empty_identity",)),
    Sample(
        "empty-name",
        stream(opening('{"place":'), more('"Oslo"}', function={"name": ""})),
        ("stream.empty_identity",),
    ),
    Sample("null-list", stream(delta(content="No.", tool_calls=None), finish="stop"), ("stream.null_list",)),
    Sample("arguments-sent-twice", stream(opening(), more(OK), more(OK)), ("args.duplicated",)),
)

IDENTITIES = (
    Sample("unknown", plain(call(name="wether")), ("name.unknown",)),
    Sample("unknown-stream", stream(opening(OK, "wether")), ("name.unknown",)),
    Sample("no-name", plain(call(name="")), ("name.unknown",)),
    Sample("kimi-name", plain(call(name="functions.weather:0")), ("name.unknown",)),
    Sample("no-id", plain(call(identity=None)), ("id.missing",)),
    Sample("empty-id-at-the-start", stream(opening(OK, identity="")), ("id.missing",)),
    Sample("one-id", plain(call(), call(BERGEN)), ("id.duplicate",)),
    Sample("one-id-stream", stream(opening(OK), opening(BERGEN, index=1)), ("id.duplicate",)),
    Sample(
        "id-of-the-past",
        plain(
            call(),
            asked={
                "messages": [{"role": "assistant", "tool_calls": [call()]}, {"role": "tool", "content": "12"}]
            },
        ),
        ("id.duplicate",),
    ),
    Sample("kimi-id", plain(call(identity="weather:0"), asked=KIMI), ("id.family_format",)),
    Sample("kimi-id-of-another", plain(call(identity="functions.ping:0"), asked=KIMI), ("id.family_format",)),
)

ENDS = (
    Sample("none", plain(call(), asked={"tool_choice": "none"}), ("choice.none_violated",)),
    Sample("none-stream", stream(opening(OK), asked={"tool_choice": "none"}), ("choice.none_violated",)),
    Sample(
        "required", plain(content="No.", asked={"tool_choice": "required"}), ("choice.required_violated",)
    ),
    Sample("named-and-silent", plain(content="No.", asked=NAMED), ("choice.required_violated",)),
    Sample("another", plain(call(), asked=NAMED), ("choice.wrong_function",)),
    Sample(
        "not-allowed",
        plain(
            call(),
            asked={
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [tool("ping")]},
                }
            },
        ),
        ("choice.wrong_function",),
    ),
    Sample("no-call", plain(content="Hm.", finish="tool_calls"), ("finish.no_call",)),
    Sample("no-call-stream", stream(delta(content="Hm.")), ("finish.no_call",)),
    Sample("stop", plain(call(), finish="stop"), ("finish.stop_with_call",)),
    Sample(
        "stop-required",
        stream(opening(OK), finish="stop", asked={"tool_choice": "required"}),
        ("finish.stop_with_call",),
    ),
    Sample(
        "hidden", plain(content="Yes and", usage=FULL, asked={"max_tokens": 32}), ("finish.length_hidden",)
    ),
    Sample(
        "hidden-stream",
        stream(opening(OK), usage=FULL, asked={"max_completion_tokens": 32}),
        ("finish.length_hidden",),
    ),
    Sample("no-finish", stream(opening(OK), finish=None), ("finish.missing",)),
    Sample("two-finishes", stream(opening(OK), delta("tool_calls")), ("finish.duplicate",)),
    Sample("no-usage", stream(opening(OK), usage=None), ("usage.missing",)),
)

OUTPUTS = (
    Sample("empty", plain(content=""), ("output.empty",)),
    Sample("empty-null", plain(), ("output.empty",)),
    Sample("empty-stream", stream(finish="stop"), ("output.empty",)),
    Sample("blank", plain(content=" \n"), ("output.empty",)),
    Sample("reasoning", plain(reasoning_content="Rain is water."), ("output.reasoning_only",)),
    Sample("reasoning-stream", stream(delta(reasoning="Rain is"), finish="stop"), ("output.reasoning_only",)),
    Sample(
        "runaway",
        plain(
            *(call(identity=f"call_{n}") for n in range(6)),
            finish="length",
            usage=FULL,
            asked={"max_tokens": 32},
        ),
        ("output.runaway_calls",),
    ),
    Sample(
        "runaway-stream",
        stream(*(opening(OK, identity=f"call_{n}", index=n) for n in range(9))),
        ("output.runaway_calls",),
    ),
    Sample("loop", plain(content="Rain" + "!" * 60, finish="length"), ("output.degenerate_loop",)),
    Sample(
        "loop-of-white-space", plain(content="-1" + "\n" * 90, finish="length"), ("output.degenerate_loop",)
    ),
    Sample(
        "loop-of-words",
        plain(content="It is the rain of the sea and it is old. " * 6),
        ("output.degenerate_loop",),
    ),
    Sample(
        "loop-stream",
        stream(*(delta(content="ha ha ") for _ in range(20)), finish="length"),
        ("output.degenerate_loop",),
    ),
    Sample(
        "loop-in-arguments",
        plain(call('{"place": "' + "no" * 40), finish="length"),
        ("args.truncated_tail", "output.degenerate_loop"),
    ),
    Sample("script", plain(content="It will rain 很多 today."), ("output.unexpected_script",)),
    Sample("script-in-arguments", plain(call('{"place": "Осло"}')), ("output.unexpected_script",)),
    Sample(
        "script-stream",
        stream(delta(content="It will дож"), delta(content="дь."), finish="stop"),
        ("output.unexpected_script",),
    ),
    Sample("structure-no-json", plain(content="Sure!", asked=FORMAT), ("output.structured_invalid",)),
    Sample("structure-unmet", plain(content='{"b": 1}', asked=FORMAT), ("output.structured_invalid",)),
    Sample(
        "structure-fenced",
        plain(content='```json\n{"a": 1}\n```', asked=FORMAT),
        ("output.structured_invalid",),
    ),
    Sample(
        "structure-any",
        plain(content="[1]", asked={"response_format": {"type": "json_object"}}),
        ("output.structured_invalid",),
    ),
    Sample(
        "structure-blank-to-the-cap",
        stream(*(delta(content=" \n") for _ in range(40)), finish="length", asked=FORMAT),
        ("output.degenerate_loop", "output.structured_invalid"),
    ),
)

BROKEN = (
    Sample(
        "broken-type",
        plain(call(name="t"), asked={"tools": [tool("t", {"type": "str"})]}),
        ("request.broken_schema",),
    ),
    Sample(
        "broken-reference",
        plain(call("{}", "t"), asked={"tools": [tool("t", {"$ref": "#/$defs/x"})]}),
        ("request.broken_schema",),
    ),
    Sample(
        "broken-dialect",
        plain(
            call("{}", "t"),
            asked={"tools": [tool("t", {"$schema": "https://example.org/mine", "type": "object"})]},
        ),
        ("request.broken_schema",),
    ),
    Sample(
        "broken-and-no-json",
        plain(call("{", "t"), asked={"tools": [tool("t", {"type": 3})]}),
        ("request.broken_schema", "args.truncated_tail"),
    ),
    Sample(
        "broken-format",
        plain(
            content="{}",
            asked={"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 1}}}},
        ),
        ("request.broken_schema",),
    ),
)

SAMPLES = (*LEAKS, *STREAMS, *IDENTITIES, *ENDS, *OUTPUTS, *BROKEN)
