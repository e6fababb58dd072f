"""APIs that show a count and nothing else."""

from __future__ import annotations

from probes.prompt_ids import best, invariants, show
from tests.unit.probes.dialects.recorded import CHAT, HELLO, TOOL, RecordedEndpoint, chat_answer
from tokenizer_checks.templates.chat import Chat


async def test_the_count_is_shown_and_no_field_of_others_is_sent() -> None:
    endpoint = RecordedEndpoint("openai", {CHAT: chat_answer(prompt_token_ids=[1, 2, 3])})
    shown = await show(endpoint, Chat(HELLO.messages, (TOOL,)))
    (one,) = shown
    assert (one.way, one.used, one.ids, one.count) == ("chat", True, None, 3)
    assert one.problem == "this API shows a count of prompt tokens, and no IDs"
    assert best(shown) is one
    assert [relation.kept for relation in invariants(shown)] == [None, None, None]
    ((_, body),) = endpoint.sent
    assert body.keys() == {"model", "messages", "tools", "temperature", "max_tokens"}


async def test_without_usage_nothing_is_told() -> None:
    answer = chat_answer()
    del answer["usage"]
    shown = await show(RecordedEndpoint("openai", {CHAT: answer}), HELLO)
    assert (shown[0].ids, shown[0].count, best(shown)) == (None, None, None)


async def test_what_it_cannot_express_is_not_sent() -> None:
    endpoint = RecordedEndpoint("openai", {CHAT: chat_answer()})
    (one,) = await show(endpoint, Chat(HELLO.messages, generation_prompt=False))
    assert one.problem == "can't ask for a prompt without the generation prompt"
    assert endpoint.sent == []
