from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer
from tokenizer_checks.counts.asks import STRINGS, template_asks, tokenizer_asks
from tokenizer_checks.counts.consistency import consistent


def test_every_request_has_a_name_of_its_own() -> None:
    names = [ask.name for ask in (*tokenizer_asks(), *template_asks(["<s>", "</s>"]))]

    assert len(names) == len(set(names))


def test_there_are_about_twenty_strings_and_no_two_alike() -> None:
    assert len(STRINGS) >= 20
    assert len(set(STRINGS.values())) == len(STRINGS)


def test_the_tokenizer_vector_tells_a_byte_vocabulary_from_a_trained_one(small: SmallTokenizer) -> None:
    texts = {ask.name: ask.messages[0]["content"] for ask in tokenizer_asks()}
    library = {
        "own": {name: len(small.ids(text)) for name, text in texts.items()},
        "bytes": {name: len(text.encode()) for name, text in texts.items()},
    }

    told = consistent({name: count + 40 for name, count in library["bytes"].items()}, library)

    assert [(fit.name, fit.hidden) for fit in told.fits] == [("bytes", 40)]


def test_a_literal_marker_counts_one_token_when_it_is_parsed_and_several_when_not(
    small: SmallTokenizer,
) -> None:
    asks = {ask.name: ask.messages[0]["content"] for ask in template_asks(["<|im_end|>"])}

    assert len(small.unmarked(asks["marker_0"])) > len(small.ids(asks["marker_0"])) + 1


def test_requests_are_what_the_chat_route_takes() -> None:
    for ask in template_asks():
        assert all({"role", "content"} <= set(message) for message in ask.messages)
        assert all(tool["type"] == "function" for tool in ask.tools)
