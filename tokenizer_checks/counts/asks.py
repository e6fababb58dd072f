"""What to send so that counts of prompt tokens tell tokenizers and templates apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Message = Mapping[str, Any]

PLAIN = "Name one town."

STRINGS: Mapping[str, str] = {
    "words": "the quick brown fox jumps over the lazy dog",
    "digits": "1234567890123456789",
    "digits_grouped": "1,234,567.89 2026-11-30 12:34",
    "capitals": "NASA HTTPServer parseURLFast",
    "names": "JavaScript GitHub YouTube PowerPoint LinkedIn iPhone",
    "contractions": "I'll they've WE'RE don't",
    "accents": "naïve façade Ångström Žižek",
    "decomposed": "nai\u0308ve fac\u0327ade",
    "cyrillic": "Быстрая коричневая лиса",
    "arabic": "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "hindi": "नमस्ते दुनिया",
    "chinese": "敏捷的棕色狐狸跳过懒狗",
    "japanese": "すばやい茶色の狐",
    "korean": "빠른 갈색 여우",
    "emoji_joined": "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308",
    "emoji_skin": "\U0001f44d\U0001f3fd",
    "crlf": "one\r\ntwo\r\n\r\nthree",
    "newlines": "one\n\n\n\ntwo",
    "spaces": "one        two",
    "tabs": "\tone\t\ttwo",
    "code": "    for (int i=0;i<n;++i){ a[i]+=b[i]*2; }",
    "json": '{"a":[1,2,{"b":null}],"c":"d\\n"}',
    "controls": "a\x01b\x02c\x7fd",
    "punctuation": "!!!???...---___===***",
    "zero_width": "one\u200btwo\ufeffthree\u00a0four",
}
"""Texts on which pre-tokenizers and vocabularies differ, by name."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request whose count of prompt tokens is wanted; ``extra`` are fields of its body besides."""

    name: str
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def tokenizer_asks() -> Iterator[Ask]:
    """Yield the requests of the tokenizer vector: a short text alone, and with each of `STRINGS` behind it.

    A line of its own keeps the text in front from growing together with it.
    """
    yield Ask("text.base", (_user(PLAIN),))
    for name, text in STRINGS.items():
        yield Ask(f"text.{name}", (_user(f"{PLAIN}\nText: {text} ."),))


def template_asks(markers: Sequence[str] = ()) -> Iterator[Ask]:
    """Yield the requests of the template vector; ``markers`` are special tokens of the model, as text.

    A marker that counts one token more than nothing was read as a marker, one
    that counts several as text.
    """
    base, system = (_user(PLAIN),), {"role": "system", "content": "Be short."}
    answer = {"role": "assistant", "content": "Pisa."}
    yield Ask("base", base)
    yield Ask("system", (system, *base))
    yield Ask("system_empty", ({"role": "system", "content": ""}, *base))
    yield Ask("turns", (*base, answer, _user("And another?")))
    yield Ask("turns_system", (system, *base, answer, _user("And another?")))
    yield Ask("system_later", (*base, answer, system, _user("And another?")))
    yield Ask("prefill", (*base, {"role": "assistant", "content": "One is"}))
    thought = {**answer, "reasoning_content": "Italy has many towns."}
    yield Ask("reasoning", (*base, thought, _user("And another?")))
    for name, on in (("thinking", True), ("thinking_off", False)):
        yield Ask(name, base, extra={"chat_template_kwargs": {"enable_thinking": on}})
    yield Ask("tool", base, (_tool("get_weather"),))
    yield Ask("tools", base, (_tool("get_weather"), _tool("get_time")))
    yield Ask("tool_system", (system, *base), (_tool("get_weather"),))
    yield Ask("tool_called", (*base, *_round_trip(), _user("And another?")), (_tool("get_weather"),))
    yield Ask("tool_thought", (*base, *_round_trip("Weather tells a town.")), (_tool("get_weather"),))
    yield Ask("think_marker", (_user(f"{PLAIN} <think>Pisa</think> ."),))
    yield Ask("typed", ({"role": "user", "content": [{"type": "text", "text": PLAIN}]},))
    for name, tail in (("space", " "), ("newline", "\n"), ("newlines", "\n\n")):
        yield Ask(f"trailing_{name}", (_user(PLAIN + tail),))
    yield Ask("leading_space", (_user(" " + PLAIN),))
    for number, marker in enumerate(markers):
        yield Ask(f"marker_{number}", (_user(f"{PLAIN} {marker} ."),))


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _tool(name: str) -> Mapping[str, Any]:
    # Keys out of order, and characters that JSON writers escape differently.
    schema = {
        "type": "object",
        "properties": {"place": {"type": "string", "description": "A <town> & 'land'"}},
    }
    function = {
        "name": name,
        "description": "Look it up \u2013 now, at https://example.org/a/b",
        "parameters": {**schema, "required": ["place"]},
    }
    return {"type": "function", "function": function}


def _round_trip(thought: str | None = None) -> tuple[Message, ...]:
    call = {
        "id": "call_0",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"place":"Pisa"}'},
    }
    thinking = {} if thought is None else {"reasoning_content": thought}
    return (
        {"role": "assistant", "content": "", **thinking, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": "Sunny, 21"},
    )
