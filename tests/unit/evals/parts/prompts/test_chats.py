from dataclasses import replace

import pytest

from evals.parts.prompts.chats import NAMES, label_of, name_of, nightly_chats
from ringtrue.errors import ConfigError


def test_a_smaller_number_asks_the_first_of_them():
    assert [named.name for named in nightly_chats(3)] == list(NAMES[:3])
    assert len({label_of(named) for named in nightly_chats(len(NAMES))}) == len(NAMES)


def test_more_chats_than_there_are_is_an_error_that_says_how_many():
    with pytest.raises(ConfigError, match=rf"there are {len(NAMES)} chats, not 99"):
        nightly_chats(99)


def test_a_label_changes_with_the_chat_and_keeps_its_name():
    named = nightly_chats(1)[0]
    other = replace(named, chat=replace(named.chat, messages=({"role": "user", "content": "else"},)))
    assert label_of(named) == label_of(nightly_chats(1)[0])
    assert label_of(other) != label_of(named)
    assert name_of(label_of(other)) == named.name
