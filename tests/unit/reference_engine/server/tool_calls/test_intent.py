from __future__ import annotations

import pytest

from reference_engine.server.tool_calls.intent import described, last_said, tools_asked_for

TOOLS = {"get_weather": "Forecast for a city.", "weather": "", "book-room": "Reserves a hotel room."}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Call get_weather for Oslo", ("get_weather",)),
        ("please GET WEATHER now", ("get_weather", "weather")),
        ("book room, then get_weather", ("book-room", "get_weather")),
        ("Which hotel has a bed?", ("book-room",)),
        ("What is the forecast?", ("get_weather",)),
        ("get_weathers and rebook-rooms", ()),
        ("Hi there, what about this tool?", ()),
        ("", ()),
    ],
)
def test_a_message_asks_for_the_tools_that_it_names_else_for_the_one_it_describes(text, asked):
    assert tools_asked_for(text, TOOLS) == asked


def test_without_tools_nothing_is_asked_for():
    assert tools_asked_for("get_weather", {}) == ()


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([{"role": "user", "content": "a"}], "a"),
        ([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}], ""),
        ([{"role": "user", "content": None}], ""),
        ([], ""),
    ],
)
def test_only_a_user_s_last_message_asks(messages, said):
    assert last_said(messages) == said


def test_tools_without_a_name_are_left_out():
    listed = [{"function": {"name": "a"}}, {"name": "b", "description": "B"}, {"function": 3}, None, {}]
    assert described(listed) == {"a": "", "b": "B"}
