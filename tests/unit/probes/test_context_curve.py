from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from probes.context_curve import LANGUAGES, CurvePrompt, build_prompts, load_text, to_request
from probes.dialects import dialect_named
from ringtrue.endpoint import LogprobRow
from ringtrue.errors import ConfigError
from ringtrue.records import Sampling

TEMPLATE = 11  # tokens that the template puts around a user message


class WordReference:
    """A reference whose tokens are at most four bytes of a word: like BPE, a border can merge or split."""

    model = "words"
    fingerprint = "0"
    context_length = 4096
    vocabulary_size = 1

    def encode(self, text: str) -> tuple[int, ...]:
        words = re.findall(r" ?\w+|\s+|[^\w\s]", text)
        return tuple(0 for word in words for _ in range(0, len(word.encode()), 4))

    def decode(self, ids: Sequence[int]) -> str:
        raise AssertionError(ids)

    def token_bytes(self, token_id: int) -> bytes:
        raise AssertionError(token_id)

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[int, ...]:
        assert tools is None
        return (0,) * (TEMPLATE + sum(len(self.encode(message["content"])) for message in messages))

    async def next_token(self, ids: Sequence[int]) -> LogprobRow:
        raise AssertionError(ids)

    async def jittered(self, ids: Sequence[Sequence[int]], *, dtype: str, seed: int) -> list[LogprobRow]:
        raise AssertionError((ids, dtype, seed))


BUCKETS = ((32, 16), (128, 8), (1024, 4))


def build(seed: int = 0, **options: Any) -> tuple[CurvePrompt, ...]:
    return build_prompts(WordReference(), BUCKETS, seed=seed, **options)


def content(prompt: CurvePrompt) -> str:
    (message,) = prompt.messages
    assert message.keys() == {"role", "content"}
    assert message["role"] == "user"
    return message["content"]


def test_each_bucket_has_its_number_of_prompts_in_all_languages_in_turn() -> None:
    counts = Counter((prompt.bucket, prompt.language) for prompt in build())
    assert counts == {(length, language): n // 4 for length, n in BUCKETS for language in LANGUAGES}


def test_the_content_is_as_long_as_its_bucket_by_the_tokenizer_of_the_reference() -> None:
    for prompt in build():
        assert prompt.text_tokens == len(WordReference().encode(content(prompt)))
        assert abs(prompt.text_tokens - prompt.bucket) <= 2


def test_the_content_is_a_slice_of_its_text_from_a_line_on_without_space_around_it() -> None:
    for prompt in build():
        text = content(prompt)
        assert text == text.strip()
        assert re.search(r"(?m)^[ \t]*" + re.escape(text), load_text(prompt.language))


def test_no_two_prompts_are_equal() -> None:
    prompts = build()
    assert (
        len({content(prompt) for prompt in prompts}) == len({prompt.id for prompt in prompts}) == len(prompts)
    )


def test_the_same_seed_gives_the_same_prompts_and_another_seed_others() -> None:
    assert build(seed=3) == build(seed=3)
    assert not {prompt.id for prompt in build(seed=3)} & {prompt.id for prompt in build(seed=4)}


def test_characters_are_never_split() -> None:
    assert all("\ufffd" not in content(prompt) for prompt in build(languages=("cjk",)))


def test_a_bucket_beyond_the_context_is_refused_with_the_longest_that_fits() -> None:
    longest = 4096 - TEMPLATE - 1
    build_prompts(WordReference(), ((longest, 1),), seed=0)
    with pytest.raises(
        ConfigError, match=f"probe.buckets.*takes 4096 tokens.*Use lengths from 1 to {longest}"
    ):
        build_prompts(WordReference(), ((longest + 1, 1),), seed=0)
    with pytest.raises(ConfigError, match="a bucket of 0 tokens"):
        build_prompts(WordReference(), ((0, 1),), seed=0)


def test_more_prompts_than_a_text_has_slices_is_an_error() -> None:
    with pytest.raises(ConfigError, match="the english text has too few different slices of 4 tokens"):
        build_prompts(
            WordReference(), ((4, 9),), seed=0, languages=("english",), text_of=lambda _: "a b c d\ne f g h\n"
        )


def test_a_text_shorter_than_the_bucket_is_an_error() -> None:
    with pytest.raises(ConfigError, match="too few different slices of 64 tokens"):
        build_prompts(WordReference(), ((64, 1),), seed=0, languages=("code",), text_of=lambda _: "int x;\n")


def test_an_unknown_language_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no text named 'latin'. There are: english, code, json, cjk"):
        build(languages=("latin",))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_committed_texts_are_long_enough_for_64k_tokens_and_have_their_source(language: str) -> None:
    text = load_text(language)
    # An economical tokenizer takes 4.2 characters of English or 1.2 of Chinese to a token.
    assert len(text) / (1.2 if language == "cjk" else 4.2) > 64 * 1024
    assert not any(line != line.rstrip() for line in text.split("\n"))


def test_a_request_asks_for_one_greedy_token_and_for_ids_where_the_dialect_has_them() -> None:
    prompt = build()[0]
    request = to_request(prompt, k=20, dialect=dialect_named("vllm"), stream=True)
    assert (request.id, request.messages, request.logprobs) == (prompt.id, prompt.messages, 20)
    assert request.sampling == Sampling(temperature=0.0, max_tokens=1)
    assert (request.return_token_ids, request.stream) == (True, True)
    assert not to_request(prompt, k=20, dialect=dialect_named("openai")).return_token_ids
