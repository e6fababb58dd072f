"""What looks odd and is right: none of it may be flagged."""

from __future__ import annotations

from tests.unit.toolcall_validator.exchanges import (
    OK,
    Sample,
    call,
    delta,
    in_pieces,
    more,
    opening,
    plain,
    stream,
    tool,
)

BERGEN = '{"place": "Bergen"}'
TUPLE = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"at": {"items": [{"type": "number"}, {"type": "string"}], "additionalItems": False}},
}
CODE = {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}, "v": {}}}
NAMED = {"tool_choice": {"type": "function", "function": {"name": "weather"}}}
CAP = {"prompt_tokens": 9, "completion_tokens": 32, "total_tokens": 41}
FORMAT = {
    "tools": [],
    "response_format": {"type": "json_schema", "json_schema": {"schema": {"required": ["a"]}}},
}


def asking(text: str) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}]}


def free(arguments: str) -> dict[str, object]:
    return plain(call(arguments, "t"), asked={"tools": [tool("t", CODE)]})


SAMPLES = tuple(
    Sample(f"valid-{name}", record)
    for name, record in {
        "plain": plain(call()),
        "stream": stream(opening(), *in_pieces(OK)),
        "stream-in-one-delta": stream(opening(OK)),
        "one-sign-a-delta": stream(opening(), *in_pieces(OK, 1)),
        "white-space-behind-an-answer": plain(content="Rain." + "\n" * 90),
        "no-arguments": plain(call("{}", "ping")),
        "no-arguments-stream": stream(opening("", "ping"), more("{}")),
        "no-arguments-stream-at-once": stream(opening("{}", "ping")),
        "no-parameters": plain(call("{}", "t"), asked={"tools": [tool("t", None)]}),
        "empty-parameters": plain(call('{"a": 1}', "t"), asked={"tools": [tool("t", {})]}),
        "text-before": plain(call(), content="Let me look."),
        "text-before-stream": stream(delta(content="Let me look."), opening(OK)),
        "reasoning-before": plain(call(), reasoning_content="Oslo, so weather."),
        "name-in-fragments": stream(opening(None, "wea"), opening(None, "ther", identity="call_a"), more(OK)),
        "usage-without-choices": stream(opening(OK)),
        "usage-in-the-last-choice": stream(opening(OK), usage=None, asked={"stream_options": {}}),
        "tuple-of-draft-07": plain(call('{"at": [1, "a"]}', "t"), asked={"tools": [tool("t", TUPLE)]}),
        "integer-as-5.0": plain(call('{"place": "Oslo", "days": 5.0}')),
        "nullable": plain(call('{"place": "Oslo", "note": null}')),
        "parallel": plain(call(), call(BERGEN, identity="call_b")),
        "parallel-stream": stream(opening(OK), opening(BERGEN, identity="call_b", index=1)),
        "parallel-interleaved": stream(
            opening('{"place":'),
            opening('{"place":', identity="call_b", index=1),
            more('"Oslo"}'),
            more('"Bergen"}', 1),
        ),
        "no-index": stream(opening('{"place":', index=None), more('"Oslo"}', index=None)),
        "no-call": plain(content="It rains."),
        "no-call-stream": stream(delta(content="It "), delta(content="rains."), finish="stop"),
        "named-ends-with-stop": plain(call(), finish="stop", asked=NAMED),
        "named-ends-with-stop-stream": stream(opening(OK), finish="stop", asked=NAMED),
        "empty-at-the-cap": plain(content="", finish="length", usage=CAP, asked={"max_tokens": 32}),
        "reasoning-at-the-cap": plain(reasoning_content="Well, the", finish="length", usage=CAP),
        "said-length": plain(content="It rains and", finish="length", usage=CAP, asked={"max_tokens": 32}),
        "filtered": plain(content="", finish="content_filter"),
        "refused": plain(refusal="No.", asked={"tool_choice": "required"}),
        "format-in-prose": plain(
            content="The Hermes format puts calls between <tool_call> and </tool_call> tags."
        ),
        "format-quoted": plain(content="Kimi opens calls by `<|tool_call_begin|>`."),
        "format-in-a-fence": plain(content="Like so:\n```\n<tool_call>{}</tool_call>\n```\nThat is all."),
        "marker-of-the-caller": plain(content="<tool_call>", asked=asking("Repeat <tool_call> please")),
        "marker-in-the-tool": plain(
            call('{"text": "<|channel|>"}', "t"),
            asked={"tools": [tool("t", CODE | {"description": "escapes <|channel|>"})]},
        ),
        "json-of-no-tool": plain(content='{"name": "Oslo", "arguments": {}}'),
        "json-without-arguments": plain(content='{"name": "weather"}'),
        "json-as-asked": plain(content='{"a": {"name": "weather", "arguments": {}}}', asked=FORMAT),
        "json-inside-text": free('{"text": "{\\"x\\": 1}"}'),
        "digits-in-text": free('{"text": "10"}'),
        "big-integer": free('{"n": 12345678901234567890}'),
        "colons-in-text": free('{"text": "a:b:c", "v": {"a": [{"b": 1}]}}'),
        "escapes": free('{"text": "\\u00e9\\n\\\\\\"{["}'),
        "white-space": free(' {\n "n" : 1 }\n'),
        "thinking-without-a-parser": plain(content="<think>Oslo.</think>It rains."),
        "four-dice": plain(*(call("{}", "ping", f"call_{n}") for n in range(4))),
        "emoji": plain(content="It rains ☔ 🌧️ — bring boots…"),
        "script-of-the-prompt": plain(content="会下雨。", asked=asking("奥斯陆会下雨吗")),
        "kanji-for-kana": plain(content="雨が降ります。", asked=asking("オスロはどう")),
        "translation": plain(content="Дождь.", asked=asking("Translate rain to Russian")),
        "gloss": plain(content="Tokyo (東京) is dry, and λ is small."),
        "accents": plain(content="À Łódź, ça va; Åse søker vær."),
        "rule-inside": plain(content="a\n" + "-" * 60 + "\nb"),
        "few-copies": plain(content="ha ha ha ha"),
        "kimi-id": plain(call(identity="functions.weather:0"), asked={"model": "Kimi-K2"}),
        "two-choices": {
            "request": {"tools": [tool()], "n": 2, "max_tokens": 12},
            "response": {
                "choices": [
                    {"index": at, "message": {"content": "Yes."}, "finish_reason": "stop"} for at in (0, 1)
                ],
                "usage": {"completion_tokens": 12},
            },
        },
        "content-in-parts": plain(content=[{"type": "text", "text": "It rains."}]),  # type: ignore[arg-type]
        "an-error-is-no-answer": {"request": {}, "response": {"error": {"message": "busy"}}},
        "never-answered": {"request": {}, "error": {"kind": "unreachable"}},
    }.items()
)
