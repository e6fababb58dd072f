"""``ringtrue tokens diff``: live against a model, live against another server, or from files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evals.tokens.asking import ask_chats, cost_line, introduced
from evals.tokens.chats import NamedChat, choose_chats, read_chats
from evals.tokens.compared import OWN, Compared, Yardstick, compared
from evals.tokens.id_files import StoredIds, read_ids
from evals.tokens.named_format import NamedFormat
from evals.tokens.outcome import judge_chat, why_unshown
from evals.tokens.own import ByServer, ByTemplate, Own
from probes.http_endpoint import connect
from probes.prompt_ids import Shown, best
from ringtrue.errors import UsageError
from ringtrue.progress import ProgressReport
from ringtrue.records import EndpointSpec
from tokenizer_checks.templates.model import ModelPrompts
from tokenizer_checks.vocabulary import Vocabulary

Answers = Mapping[str, tuple[Shown, ...]]


@dataclass(frozen=True, slots=True)
class ChatOrder:
    """Which chats are asked."""

    names: tuple[str, ...] = ()
    everything: bool = False
    file: Path | None = None

    def chats(self, marker: str | None) -> tuple[NamedChat, ...]:
        """Return the chats.

        Raises:
            UsageError: a name is unknown, the file can't be used, or both are given.
        """
        if self.file is None:
            return choose_chats(self.names, everything=self.everything, marker=marker)
        if self.names or self.everything:
            raise UsageError("name chats, or a file of them, not both", where="--chats")
        return read_chats(self.file)


def diff_live(
    spec: EndpointSpec,
    against: EndpointSpec | None,
    order: ChatOrder,
    reference: NamedFormat,
    *,
    env: Mapping[str, str],
    now: datetime,
    progress: ProgressReport,
) -> Compared:
    """Ask one endpoint, or two, for the IDs of chats and compare them.

    Raises:
        UsageError: the chats can't be had.
        MeasureError: a server that has to be asked for its model can't be talked to.
        ConfigError: an endpoint's description is wrong.
    """
    chats = order.chats(reference.marker)
    spec, shown = asyncio.run(_asked(spec, chats, env, progress))
    prompts = reference.prompts
    if against is None:
        owns: dict[str, Own] = {named.name: ByTemplate(prompts, named.chat, now) for named in chats}
        return _judged(spec, shown, owns, Yardstick(OWN, reference.name, prompts.vocabulary))
    other, theirs = asyncio.run(_asked(against, chats, env, progress))
    owns = {name: _by_server(ways) for name, ways in theirs.items()}
    yardstick = Yardstick(f"those of {other.name}", reference.name, prompts.vocabulary)
    return _judged(spec, shown, owns, yardstick)


def diff_files(used: Path, expected: Path | None, reference: NamedFormat, *, now: datetime) -> Compared:
    """Compare IDs in files with each other, or recorded prompts with the model's own.

    Prompts are joined by name, and a file with one prompt goes with another of one.

    Raises:
        UsageError: a file can't be used, no prompt is in both, or expected IDs
            lie outside the vocabulary.
    """
    prompts = reference.prompts
    stored = read_ids(used)
    if expected is None:
        owns = {one.name: _by_template(one, prompts, now, used) for one in stored.values()}
    else:
        right = _within(read_ids(expected), prompts.vocabulary, expected, reference.name)
        stored, owns = _joined(stored, right, used)
    shown = {name: (_shown(one),) for name, one in stored.items()}
    spec = EndpointSpec(str(used), "", reference.name)
    own = OWN if expected is None else f"those of {expected}"
    return _judged(spec, shown, owns, Yardstick(own, reference.name, prompts.vocabulary))


async def _asked(
    spec: EndpointSpec, chats: Sequence[NamedChat], env: Mapping[str, str], progress: ProgressReport
) -> tuple[EndpointSpec, Answers]:
    spec = await introduced(spec, env)
    progress.say(f"{spec.name}: {cost_line(spec, chats)}")
    progress.begin(spec.name, len(chats))
    async with aclosing(connect(spec, env)) as endpoint:
        return spec, await ask_chats(endpoint, chats, lambda: progress.advance(spec.name))


def _judged(spec: EndpointSpec, shown: Answers, owns: Mapping[str, Own], yardstick: Yardstick) -> Compared:
    words = yardstick.vocabulary
    outcomes = [judge_chat(name, ways, owns[name], words) for name, ways in shown.items()]
    return compared(spec.name, spec.model, outcomes, owns, yardstick)


def _by_server(ways: Sequence[Shown]) -> Own:
    told = best(ways)
    if told is not None and told.ids is not None:
        return ByServer(told.ids)
    why = "only a count" if told is not None else why_unshown(ways)
    return ByServer(None, f"the other server showed no IDs: {why}")


def _by_template(one: StoredIds, prompts: ModelPrompts, now: datetime, used: Path) -> Own:
    if one.chat is None:
        raise UsageError(
            f"{one.name} holds no messages, so that what is expected can't be rendered",
            where=str(used),
            remedy="Give the expected IDs with --expected FILE",
        )
    return ByTemplate(prompts, one.chat, one.at or now)


def _within(
    right: Mapping[str, StoredIds], vocabulary: Vocabulary, path: Path, tokenizer: str
) -> Mapping[str, StoredIds]:
    for one in right.values():
        foreign = next((i for i in one.ids or () if not vocabulary.knows(i)), None)
        if foreign is not None:
            raise UsageError(
                f"the ID {foreign:,} is not in the vocabulary of {tokenizer} ({vocabulary.size:,} tokens)",
                where=str(path),
                remedy="Name the tokenizer that the expected IDs are of with --tokenizer",
            )
    return right


def _joined(
    stored: Mapping[str, StoredIds], right: Mapping[str, StoredIds], used: Path
) -> tuple[Mapping[str, StoredIds], dict[str, Own]]:
    if len(stored) == len(right) == 1:
        (mine,), (theirs,) = stored.values(), right.values()
        return {mine.name: mine}, {mine.name: ByServer(theirs.ids, "no IDs are expected")}
    both = {name: one for name, one in stored.items() if name in right}
    if not both:
        raise UsageError("no prompt has the id of an expected one", where=str(used))
    return both, {name: ByServer(right[name].ids, "no IDs are expected") for name in both}


def _shown(one: StoredIds) -> Shown:
    problem = None if one.ids is not None or one.count is not None else "the recording holds no token IDs"
    return Shown("recording", used=True, ids=one.ids, count=one.count, problem=problem)
