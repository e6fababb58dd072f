"""Are the token IDs of a set of chats the model's own? And what to keep of them for the next night."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.prompts.chats import label_of, nightly_chats
from evals.parts.prompts.states import states_of
from evals.tokens.chats import NamedChat
from evals.tokens.compared import Yardstick, compared
from evals.tokens.outcome import Match, Outcome, judge_chat
from evals.tokens.own import ByTemplate
from probes.prompt_ids import Shown, rendering_ways
from ringtrue.endpoint import Reference
from ringtrue.nightly_numbers import OF_CHATS
from ringtrue.records import DRIFT, Check, EndpointSpec, Finding, Request
from ringtrue.verdict import state_of
from tokenizer_checks.templates.model import ModelPrompts

_OF_THE_CURVE = "tokens."
_TRIES = 2  # chats after which a route that never shows IDs is asked no more


class PromptsPart:
    """Asks ``count`` chats for one token each, and holds the IDs of their prompts against the model's own.

    Chats are asked by the best way of the endpoint's dialect. Where its answer
    shows no IDs, the routes that only render or tokenize are asked too. ``at``
    is when the night began: a template may write the day.

    Raises:
        ConfigError: there are not so many chats.
    """

    name = "prompts"
    check = Check.TOKENS
    basis = "prompts"  # states are compared chat by chat, whatever the reference is

    def __init__(self, reference: Reference, *, count: int, at: datetime) -> None:
        self._prompts = ModelPrompts(reference, name=f"the template of {reference.model}")
        self._chats = nightly_chats(count)
        self._yardstick = Yardstick("the model's own", reference.model, self._prompts.vocabulary)
        self._owns = {named.name: ByTemplate(self._prompts, named.chat, at) for named in self._chats}

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return a request a chat that fits, with the tokens of its prompt by the model's own template.

        Where that refuses the chat, nobody knows how long it is: it is taken for the longest.
        """
        sizes = {name: len(own.right[0]) for name, own in self._owns.items() if own.right}
        longest = max(sizes.values(), default=0)
        return [
            (named.request, sizes.get(named.name, longest))
            for named in self._chats
            if spec.context_length is None or sizes.get(named.name, longest) < spec.context_length
        ]

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:  # noqa: ARG002 - the protocol's
        """Ask every chat, keep its state, and say where IDs or counts are not the model's own.

        Says nothing where the endpoint shows neither: the context curve has said so.
        """
        fits = {request.id for request, _ in self.planned(asker.spec)}
        renders = rendering_ways(asker.dialect)
        in_vain = 0
        outcomes: list[Outcome] = []
        for named in self._chats:
            if asker.stopped is not None or named.name not in fits:
                continue
            shown = await self._show(asker, named, renders if in_vain < _TRIES else frozenset())
            in_vain = in_vain + 1 if renders and not any(one.ids for one in shown) else 0
            own = self._owns[named.name]
            vocabulary = self._prompts.vocabulary
            # Dozens of faults are rendered for a chat that differs: not on the event loop.
            outcome = await asyncio.to_thread(judge_chat, named.name, shown, own, vocabulary)
            for state in states_of(outcome, own.right, vocabulary):
                await asker.number(state.metric, state.value, state.unit, 1, label=label_of(named))
            outcomes.append(outcome)
        if all(one.match in (Match.UNSHOWN, Match.REFUSED) for one in outcomes):
            return ()
        found = compared(asker.spec.name, asker.spec.model, outcomes, self._owns, self._yardstick)
        return tuple(
            replace(finding, code=OF_CHATS + finding.code.removeprefix(_OF_THE_CURVE))
            for finding in found.findings
        )

    async def aclose(self) -> None:
        """Nothing is computed in the background."""

    async def _show(self, asker: Asker, named: NamedChat, renders: frozenset[str]) -> tuple[Shown, ...]:
        first = await asker.show(named.chat, ways={asker.dialect.ways[0].name}, name=named.name)
        if not renders or any(one.ids is not None for one in first):
            return first
        return (*first, *await asker.show(named.chat, ways=renders, name=named.name))


def with_layers(of_curve: Sequence[Finding], of_parts: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the curve's findings, that of other token IDs with the layer that most chats tell."""
    drifting = [f for f in of_parts if f.code.startswith(OF_CHATS) and state_of(f) in DRIFT]
    if not drifting:
        return tuple(of_curve)
    told = max(drifting, key=lambda finding: finding.value or 0.0)  # the layer of most chats
    return tuple(
        replace(finding, message=f"{finding.message}; of the chats: {told.message}")
        if finding.check is Check.TOKENS and state_of(finding) in DRIFT
        else finding
        for finding in of_curve
    )
