"""What a server with a known fault would show, without a server: every fault, in every shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from evals.tokens.chats import NamedChat, choose_chats
from evals.tokens.compared import Compared, Yardstick, compared
from evals.tokens.outcome import judge_chat
from evals.tokens.own import ByTemplate
from probes.prompt_ids import Shown
from tests.unit.evals.tokens.small_format import small_format
from tokenizer_checks.templates.model import ModelPrompts

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def shown_by(
    prompts: ModelPrompts, chats: Sequence[NamedChat], fault: str | None = None, *, counted: bool = False
) -> dict[str, tuple[Shown, ...]]:
    """Return what a server shows that renders by ``prompts`` with ``fault``."""
    result = {}
    for named in chats:
        ids = prompts.ids(named.chat, NOW)
        if fault is not None:
            ids = prompts.faults(named.chat, NOW).get(fault, ids)
        one = Shown("chat", used=True, ids=None if counted else ids, count=len(ids))
        result[named.name] = (one,)
    return result


def compare_shown(
    prompts: ModelPrompts, chats: Sequence[NamedChat], shown: Mapping[str, tuple[Shown, ...]]
) -> Compared:
    """Return what is found where a server shows ``shown`` and ``prompts`` are right."""
    owns = {named.name: ByTemplate(prompts, named.chat, NOW) for named in chats}
    outcomes = [judge_chat(name, ways, owns[name], prompts.vocabulary) for name, ways in shown.items()]
    return compared("acme", "m", outcomes, owns, Yardstick("the model's own", "small", prompts.vocabulary))


def compared_with(
    fault: str | None = None,
    *,
    names: tuple[str, ...] = (),
    counted: bool = False,
    template: str | None = None,
) -> Compared:
    """Return what is found of a server with ``fault``, asked these chats or the few."""
    own = small_format()
    chats = choose_chats(names, marker=own.marker)
    server = own.prompts if template is None else small_format(template).prompts
    return compare_shown(own.prompts, chats, shown_by(server, chats, fault, counted=counted))


def without_ids(ways: tuple[Shown, ...], problem: str) -> tuple[Shown, ...]:
    """Return the ways as if the server had shown nothing, for ``problem``."""
    return tuple(replace(one, ids=None, count=None, problem=problem) for one in ways)
