from __future__ import annotations

from tokenizer_checks.templates.chat import Message
from tokenizer_checks.templates.fixtures import fixtures

NEEDED = {
    "system", "empty_system", "two_turns", "tool_unsorted_keys", "tool_html", "typed_content", "prefill",
    "reasoning_history", "thinking_on", "thinking_off", "tool_round_trip_foreign_ids", "special_tokens",
    "trailing_space", "unicode_scripts", "unicode_emoji", "unicode_combining", "unicode_invisible",
    "date_asked",
}  # fmt: skip


def test_there_are_at_least_forty_each_with_a_name_and_a_purpose_of_its_own() -> None:
    all_of_them = fixtures()

    assert len(all_of_them) >= 40
    assert len({f.name for f in all_of_them}) == len(all_of_them)
    assert all(f.purpose for f in all_of_them)
    assert {f.name for f in all_of_them} >= NEEDED


def test_every_fixture_is_a_chat_of_its_own() -> None:
    chats = [repr(f.chat) for f in fixtures()]

    assert len(set(chats)) == len(chats)


def test_every_result_answers_a_call_before_it() -> None:
    for fixture in fixtures():
        called: set[str] = set()
        for message in fixture.chat.messages:
            called |= {call["id"] for call in message.get("tool_calls", [])}
            assert _answers(message) <= called, fixture.name


def _answers(message: Message) -> set[str]:
    return {message["tool_call_id"]} if "tool_call_id" in message else set()
