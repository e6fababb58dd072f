from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache

import pytest

from ringtrue.errors import ModelError
from tests.unit.tokenizer_checks.templates.sources import CHATML, DATED, HARMONY, INST, SOURCES
from tokenizer_checks.blame import Layer
from tokenizer_checks.templates.chat import Chat, Prompt
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.fixtures import fixtures
from tokenizer_checks.templates.mutators import MUTATORS, Effect, Mutator, mutate_ids, mutate_text

DAY = datetime(2026, 3, 1, tzinfo=UTC)
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
RENDERER = Renderer(kept=256)
BY_NAME = {mutator.name: mutator for mutator in MUTATORS}
MARKER = re.compile(r"(<\|[a-z_]+\|>|\[/?[A-Z_]+\]|</?s>|</?think>)")
WORD = re.compile(r"\s?\w+|\s+|[^\w\s]+", re.UNICODE)


@cache
def token(text: str) -> int:
    return int.from_bytes(text.encode("utf-8", "surrogatepass"), "big")


def encode(text: str, *, parse_special: bool) -> Sequence[int]:
    """Words with the space before them, and markers whole: as a byte-level tokenizer cuts, with no merges."""
    pieces = MARKER.split(text) if parse_special else [text]
    return [
        token(t) for p in pieces for t in ([p] if MARKER.fullmatch(p) and parse_special else WORD.findall(p))
    ]


def prompts() -> Iterator[Prompt]:
    for family, source in SOURCES.items():
        for fixture in fixtures():
            prompt = Prompt(source, fixture.chat, DAY, SPECIAL, f"{family} {fixture.name}")
            try:
                RENDERER.render(prompt)
            except ModelError:
                continue
            yield prompt


PROMPTS = tuple(prompts())
HONEST = [(prompt, tuple(encode(RENDERER.render(prompt), parse_special=True))) for prompt in PROMPTS]
ALWAYS = {"eos_appended", "spaces_around_markers"}  # no prompt of ours is without markers


def mutated(name: str, source: str, fixture: str, now: datetime = DAY) -> str:
    chat = next(f.chat for f in fixtures() if f.name == fixture)
    result = mutate_text(BY_NAME[name], Prompt(source, chat, now, SPECIAL), RENDERER)
    assert result.text is not None, result.reason
    return result.text


def test_there_are_at_least_thirty_with_names_layers_and_issues() -> None:
    assert len(MUTATORS) >= 30
    assert len(BY_NAME) == len(MUTATORS)
    assert all(mutator.issue and mutator.fault for mutator in MUTATORS)
    assert {mutator.layer for mutator in MUTATORS} == set(Layer) - {Layer.UNKNOWN}


@pytest.mark.parametrize("mutator", MUTATORS, ids=lambda m: m.name)
def test_each_changes_the_ids_of_some_prompt_and_says_so_where_it_changes_none(mutator: Mutator) -> None:
    effects: set[Effect] = set()
    for prompt, honest in HONEST:
        if {Effect.CHANGED, Effect.NOTHING} <= effects:
            break
        result = mutate_ids(mutator, prompt, RENDERER, encode)
        assert (result.effect is Effect.REFUSED) == (result.ids is None) == (result.reason is not None)
        assert (result.effect is Effect.NOTHING) == (result.ids == honest)
        effects.add(result.effect)

    assert Effect.CHANGED in effects
    assert Effect.NOTHING in effects or mutator.name in ALWAYS


def test_the_same_fault_gives_the_same_ids_again() -> None:
    for mutator in MUTATORS:
        first = mutate_ids(mutator, PROMPTS[0], RENDERER, encode)
        assert mutate_ids(mutator, PROMPTS[0], Renderer(), encode) == first


def test_a_template_that_refuses_the_mutated_chat_says_why() -> None:
    source = "{{ raise_exception('a system message is needed') if messages[0].role != 'system' }}ok"
    chat = next(f.chat for f in fixtures() if f.name == "system")

    result = mutate_text(BY_NAME["system_dropped"], Prompt(source, chat, DAY), RENDERER)

    assert (result.effect, result.text) == (Effect.REFUSED, None)
    assert "a system message is needed" in (result.reason or "")


def test_a_prompt_that_is_refused_without_any_fault_raises() -> None:
    prompt = Prompt("{{ raise_exception('never') }}", Chat(({"role": "user", "content": "x"},)), DAY)

    with pytest.raises(ModelError, match="never"):
        mutate_text(MUTATORS[0], prompt, RENDERER)


def test_bos_is_doubled_only_where_the_template_writes_it() -> None:
    assert mutated("bos_doubled", DATED, "one_user").startswith("<s><s><|start_header_id|>")
    assert mutated("bos_doubled", CHATML, "one_user").startswith("<|im_start|>")
    assert mutated("bos_added", CHATML, "one_user").startswith("<s><|im_start|>")


def test_a_prefill_is_closed_and_a_new_answer_begun() -> None:
    text = mutated("final_message_closed", CHATML, "prefill")

    assert text.endswith("The tallest mountain of Norway is<|im_end|>\n<|im_start|>assistant\n")


def test_a_stuck_date_shows_the_next_day_and_not_on_its_own() -> None:
    assert "26 Jul 2024" in mutated("date_stuck", DATED, "one_user")
    own_day = datetime(2024, 7, 26, 12, tzinfo=UTC)
    chat = next(f.chat for f in fixtures() if f.name == "one_user")
    result = mutate_text(BY_NAME["date_stuck"], Prompt(DATED, chat, own_day, SPECIAL), RENDERER)
    assert result.effect is Effect.NOTHING


def test_the_default_system_prompt_is_dropped_or_replaced_and_the_callers_is_not() -> None:
    assert "Ember" not in mutated("default_system_dropped", CHATML, "one_user")
    assert "an AI assistant" in mutated("default_system_replaced", CHATML, "one_user")
    assert "mountain guide" in mutated("default_system_replaced", CHATML, "system")


def test_the_json_of_tools_is_written_otherwise() -> None:
    assert '{"description": "Tell' in mutated("tool_description_first", CHATML, "one_tool").replace(
        '{"type": "function", "function": ', ""
    )
    assert '"strict": false' in mutated("tool_strict_injected", CHATML, "one_tool")
    assert '"function":{"name":"get_weather"' in mutated("tool_json_compact", CHATML, "one_tool")
    assert "\\u003cb\\u003e" in mutated("tool_json_html", CHATML, "tool_html")
    assert "https:\\/\\/example.org" in mutated("tool_json_slashes", CHATML, "tool_html")
    assert "\\u2013" in mutated("tool_json_ascii", CHATML, "tool_unicode")
    assert '"and": {"type": "string"}, "yes"' in mutated("tool_keys_sorted", CHATML, "tool_unsorted_keys")


def test_harmonys_sections_change_places() -> None:
    text = mutated("tool_section_moved", HARMONY, "tools_and_system")

    assert text.index("# Tools") < text.index("# Instructions") < text.index("<|end|>")


def test_identities_are_renamed_alike_in_call_and_result() -> None:
    text = mutated("tool_ids_renamed", INST, "tool_parallel_calls")

    assert text.count("call00000") == text.count("call00001") == 2
    assert "functions.get_weather" not in text


def test_arguments_are_quoted_once_more() -> None:
    assert '"arguments": "{\\"city\\"' in mutated("tool_arguments_as_text", CHATML, "tool_round_trip")


def test_a_space_stands_behind_markers_or_on_both_sides() -> None:
    assert "<|im_start|> user\n" in mutated("space_behind_markers", CHATML, "one_user")
    assert " <|im_end|> \n" in mutated("spaces_around_markers", CHATML, "one_user")


def test_the_oldest_turns_are_left_out_and_the_system_message_stays() -> None:
    text = mutated("oldest_dropped", CHATML, "five_turns")

    assert "Be brief." in text
    assert "What did I ask first?" in text
    assert "Question 3" not in text


def test_a_users_control_tokens_become_text_and_the_templates_own_stay() -> None:
    prompt = next(p for p in PROMPTS if p.name == "chatml injected_turn")

    result = mutate_ids(BY_NAME["content_markers_escaped"], prompt, RENDERER, encode)

    assert result.ids is not None
    honest = encode(RENDERER.render(prompt), parse_special=True)
    assert (honest.count(token("<|im_start|>")), result.ids.count(token("<|im_start|>"))) == (5, 3)


def test_the_marker_of_reasoning_is_three_tokens() -> None:
    prompt = next(p for p in PROMPTS if p.name == "chatml reasoning_history")

    result = mutate_ids(BY_NAME["think_marker_split"], prompt, RENDERER, encode)

    assert result.ids is not None
    assert token("<think>") not in result.ids
    assert token("think") in result.ids


def test_another_pre_tokenizer_keeps_the_text_and_the_markers() -> None:
    prompt = next(p for p in PROMPTS if p.name == "chatml digits")
    honest = tuple(encode(RENDERER.render(prompt), parse_special=True))

    for name in ("words_cut", "digits_cut"):
        result = mutate_ids(BY_NAME[name], prompt, RENDERER, encode)
        assert result.ids is not None
        assert len(result.ids) > len(honest)
        assert result.ids.count(token("<|im_end|>")) == honest.count(token("<|im_end|>"))


def test_another_pre_tokenizer_keeps_a_marker_whole_that_only_the_tokenizer_knows() -> None:
    chat = next(f.chat for f in fixtures() if f.name == "think_text")
    prompt = Prompt(CHATML, chat, DAY, SPECIAL)

    ids = mutate_ids(BY_NAME["words_cut"], prompt, RENDERER, encode).ids
    assert ids is not None
    assert {token("<think>"), token("</think>")} <= set(ids)
    assert token("think") not in ids
