"""What a model's prompts should be: the IDs by its own template, on the days that a server may have."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from ringtrue.endpoint import PromptFormat
from ringtrue.errors import ModelError
from tokenizer_checks.alignment import nearest
from tokenizer_checks.templates.chat import Chat, Prompt
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.mutators import MUTATORS, Effect, mutate_ids
from tokenizer_checks.vocabulary import Vocabulary

_DAY = timedelta(days=1)

Ids = tuple[int, ...]


def near_days(now: datetime) -> tuple[datetime, datetime, datetime]:
    """Return the days that a server's calendar may show: today, yesterday and tomorrow.

    It lives in a time zone that nobody knows, and midnight passes between a
    question and its answer.
    """
    return now, now - _DAY, now + _DAY


class ModelPrompts:
    """A model's prompts: the expected IDs, and those that known faults would give.

    Everything it returns is a pure function of its arguments.
    """

    def __init__(
        self, model: PromptFormat, *, name: str = "chat template", renderer: Renderer | None = None
    ) -> None:
        self.vocabulary = Vocabulary(
            model.decode, model.special_ids, model.bos_id, model.end_ids, model.vocabulary_size
        )
        self._model = model
        self._name = name
        self._renderer = renderer or Renderer()

    def prompt(self, chat: Chat, now: datetime) -> Prompt:
        """Return what the text of a chat follows from.

        Raises:
            ModelError: the model has no chat template.
        """
        template = self.template_of(chat)
        if template is None:
            raise ModelError(
                "the model has no chat template", where=self._name, remedy="Give one with --template FILE"
            )
        return Prompt(template, chat, now, self._model.special_tokens, self._name)

    def template_of(self, chat: Chat) -> str | None:
        """Return the source of the template that renders a chat, ``None`` if the model has none."""
        return self._model.tool_template if chat.tools else self._model.template

    def text(self, chat: Chat, now: datetime) -> str:
        """Return the text of a chat.

        Raises:
            ModelError: the model has no template, or the template refuses the chat.
        """
        return self._renderer.render(self.prompt(chat, now))

    def ids(self, chat: Chat, now: datetime) -> Ids:
        """Return the token IDs of ``text``; the template writes its own special tokens.

        Raises:
            ModelError: as ``text``.
        """
        return self.encode(self.text(chat, now), parse_special=True)

    def days(self, chat: Chat, now: datetime) -> tuple[Ids, ...]:
        """Return the IDs that are right on today's date, and on yesterday's and tomorrow's.

        A template that writes no date gives one list; the first is today's.

        Raises:
            ModelError: as ``text``.
        """
        texts = dict.fromkeys(self.text(chat, day) for day in near_days(now))
        return tuple(self.encode(text, parse_special=True) for text in texts)

    def expected(self, chat: Chat, now: datetime, used: Sequence[int]) -> Ids:
        """Return the IDs that ``used`` ones are to be held against: the `nearest` of ``days``.

        Raises:
            ModelError: as ``text``.
        """
        return nearest(self.days(chat, now), used)

    def faults(self, chat: Chat, now: datetime, among: Collection[str] | None = None) -> Mapping[str, Ids]:
        """Return the IDs that known faults give, by the mutator's name; those that change none are left out.

        ``among`` names those to work out: each costs a rendering; ``None`` for all.

        Raises:
            ModelError: as ``text``.
        """
        prompt = self.prompt(chat, now)
        encode = functools.cache(self.encode)  # most faults leave most of the text as it is
        mutated = {
            one.name: mutate_ids(one, prompt, self._renderer, encode)
            for one in MUTATORS
            if among is None or one.name in among
        }
        return {
            name: one.ids
            for name, one in mutated.items()
            if one.effect is Effect.CHANGED and one.ids is not None
        }

    def encode(self, text: str, *, parse_special: bool) -> Ids:
        """Return the IDs of a text, control tokens in it read as such or as plain text; none is added."""
        if parse_special:
            return self._model.encode_prompt(text, add_special_tokens=False)
        return self._model.encode(text)
