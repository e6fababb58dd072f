"""Does an endpoint still turn the same messages into the same token IDs? Asked without any reference.

Every prompt has a state: the fingerprint of its token IDs, or where a server
only counts them, how many there are. An honest server's states don't vary, so
there is nothing to estimate: a state that was not seen before is a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from collector.streams.statement import accept_command, code_of
from evals.parts.prompts.chats import name_of
from evals.parts.prompts.states import DEPARTURE, IDS, OWN
from ringtrue.alarm import Alarm
from ringtrue.labelled_numbers import LabelledNumbers
from ringtrue.records import Cause, Check, Finding, Party, Severity
from ringtrue.report import counted
from ringtrue.store import Store

STREAM = "prompt_states"
RUNS = 60  # before tonight, whose states count as seen
NAMED = 8  # prompts that a sentence names; the others are counted

States = Mapping[str, tuple[str, float]]
"""Metric and value by prompt."""


@dataclass(frozen=True, slots=True)
class Changed:
    """``prompts`` have states that were not seen before, out of ``compared``; ``ids``: by their IDs."""

    prompts: tuple[str, ...]
    compared: int
    ids: bool


def judge_prompt_states(
    store: Store, endpoint: str, findings: Sequence[Finding], *, run: str, at: datetime
) -> tuple[tuple[Finding, ...], tuple[Alarm, ...]]:
    """Return what tonight's prompts say beside those of earlier runs, and the alarm that changed.

    ``findings`` are tonight's: where nothing of the prompts was measured, a
    standing alarm is silent.

    An alarm is raised on the first night with another state, stands until the
    old states are back or somebody accepts the new ones, and says CHANGED. A
    prompt that has the model's own IDs tonight is no change for the worse: a
    template that was mended ends an alarm and raises none. Nothing is written.

    Raises:
        StoreError: The store refused.
    """
    mine = [alarm for alarm in store.alarms(endpoint, Check.TOKENS) if alarm.stream == STREAM]
    standing = next((alarm for alarm in mine if alarm.closed is None), None)
    nights = store.labelled(endpoint, (IDS, DEPARTURE, OWN), run=run, limit=RUNS + 1)
    tonight = nights[-1] if nights and nights[-1].run == run else None
    changed = changed_tonight(nights[:-1], tonight, mine) if tonight is not None else None
    if changed is None:
        measured = any(finding.measured for finding in findings if finding.check is Check.TOKENS)
        return ((_finding(standing, None),), ()) if standing is not None and measured else ((), ())
    if not changed.prompts:
        return (), () if standing is None else (replace(standing, closed=at, until=at),)
    if standing is not None:
        return (_finding(standing, changed),), ()
    alarm = Alarm(
        run=run,
        endpoint=endpoint,
        check=Check.TOKENS,
        stream=STREAM,
        since=at,
        raised=at,
        evidence=float(len(changed.prompts)),
        threshold=1.0,
        level=0.0,
        spread=0.0,
    )
    return (_finding(alarm, changed),), (alarm,)


def changed_tonight(
    before: Sequence[LabelledNumbers], tonight: LabelledNumbers, alarms: Sequence[Alarm]
) -> Changed | None:
    """Return which prompts have a state tonight that none of the nights before had.

    Nights count from the last accepted change on, without those of a change
    that went away or still stands. ``None`` where no prompt can be compared.
    """
    seen: dict[str, set[tuple[str, float]]] = {}
    for night in before:
        if not _left_out(night.started, alarms):
            for prompt, state in _states(night).items():
                seen.setdefault(prompt, set()).add(state)
    states = _states(tonight)
    # Where only counts were seen before, IDs have nothing to be held against, and the other way round.
    compared = {
        prompt: state
        for prompt, state in states.items()
        if any(metric == state[0] for metric, _ in seen.get(prompt, ()))
    }
    if not compared:
        return None
    changed = sorted(
        prompt
        for prompt, state in compared.items()
        if state not in seen[prompt] and tonight.values.get((OWN, prompt)) != 1.0
    )
    return Changed(tuple(changed), len(compared), any(metric == IDS for metric, _ in compared.values()))


def _states(night: LabelledNumbers) -> States:
    counts = {p: (metric, value) for (metric, p), value in night.values.items() if metric == DEPARTURE}
    return counts | {p: (metric, value) for (metric, p), value in night.values.items() if metric == IDS}


def _left_out(started: datetime, alarms: Sequence[Alarm]) -> bool:
    for alarm in alarms:
        if alarm.by is not None:
            if started < alarm.since:
                return True
        elif started >= alarm.since and (alarm.until is None or started < alarm.until):
            return True
    return False


def _finding(alarm: Alarm, changed: Changed | None) -> Finding:
    names = [] if changed is None else [name_of(label) for label in changed.prompts]
    return Finding(
        endpoint=alarm.endpoint,
        check=Check.TOKENS,
        code=code_of(Check.TOKENS),
        severity=Severity.WARN,
        party=Party.PROVIDER,
        cause=Cause.PROMPT,
        message=(
            f"the same messages no longer give the prompt that they gave before {alarm.since:%Y-%m-%d}: "
            f"{_what(changed, names)}. "
            f"Ask what was changed there; if it is wanted: {accept_command(alarm)}"
        ),
        alternatives=(Cause.IDENTITY, Cause.CONTEXT),
        metric="changed_chats",
        value=None if changed is None else len(names) / changed.compared,
        unit="share",
        n=0 if changed is None else changed.compared,
        evidence={"chats": names[:NAMED], "more_chats": max(0, len(names) - NAMED)},
        since=alarm.since,
    )


def _what(changed: Changed | None, names: Sequence[str]) -> str:
    if changed is None:
        return "not compared tonight"
    what = "token IDs" if changed.ids else "counts of tokens"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    chats = counted(changed.compared, "chat")
    return f"other {what} in {len(names)} of {chats} ({', '.join(names[:NAMED])}{more})"
