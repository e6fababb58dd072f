"""From token IDs to pieces of an answer: the one path behind every generating route."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from reference_engine.engine import Engine
from reference_engine.generation import GenerationSpec, Step
from reference_engine.scoring import PromptScores
from reference_engine.server.replica import Treatment
from reference_engine.server.text import TextAssembler
from reference_engine.server.tool_calls.forced import Forced, forced_ids, forced_steps, scores_of_prompt


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is asked to continue, after all faults, and how.

    ``forced`` is what a constraint makes it say, whole; ``scored`` tells
    whether the tokens of the answer need logprobs.
    """

    treatment: Treatment
    ids: tuple[int, ...]
    spec: GenerationSpec
    stops: Sequence[str]
    forced: Forced | None = None
    scored: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """One generated token and the text it completed. ``finish_reason`` is set on the last."""

    text: str
    step: Step
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """All pieces of one answer. ``prompt_scores`` is there if it was asked for."""

    prompt: Prompt
    pieces: tuple[Piece, ...]
    prompt_scores: PromptScores | None

    @property
    def text(self) -> str:
        """The answer's text, without control tokens and up to a stop string."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def steps(self) -> list[Step]:
        """The generated tokens."""
        return [piece.step for piece in self.pieces]

    @property
    def finish_reason(self) -> str:
        """Why it ended: ``stop`` or ``length``."""
        return (self.pieces[-1].finish_reason if self.pieces else None) or "length"


async def generate_pieces(engine: Engine, prompt: Prompt) -> AsyncGenerator[Piece, None]:
    """Yield the answer as it is generated; closing the iterator ends the generation.

    Raises:
        UsageError: the prompt is empty, too long, or holds an unknown ID.
        MeasureError: a forward pass failed.
    """
    treatment = prompt.treatment
    if prompt.forced is not None:
        for piece in await _forced_pieces(engine, prompt, prompt.forced):
            yield piece
        return
    text = TextAssembler(treatment.model.codec, prompt.stops)
    steps = engine.generate(
        treatment.model, prompt.ids, prompt.spec, corrupt_beyond=treatment.faults.corrupt_beyond
    )
    async with aclosing(steps):
        async for step in steps:
            delta = text.feed(step.token_id)
            reason = step.finish_reason
            if reason is not None:
                delta += text.finish()
            if text.stopped:
                reason = "stop"
            yield Piece(delta, step, reason)
            if text.stopped:
                return


async def generate_answer(engine: Engine, prompt: Prompt) -> Answer:
    """Return the whole answer; with ``max_tokens`` 0 only the prompt's scores.

    Raises:
        UsageError, MeasureError: as ``generate_pieces``.
    """
    treatment, spec = prompt.treatment, prompt.spec
    if spec.max_tokens == 0:
        beyond = treatment.faults.corrupt_beyond
        scores = await engine.score_prompt(
            treatment.model, prompt.ids, spec.prompt_top or 0, corrupt_beyond=beyond
        )
        return Answer(prompt, (), scores)
    pieces = [piece async for piece in generate_pieces(engine, prompt)]
    return Answer(prompt, tuple(pieces), pieces[0].step.prompt)


async def _forced_pieces(engine: Engine, prompt: Prompt, forced: Forced) -> list[Piece]:
    """The pieces of an answer that is known beforehand; the model is asked for logprobs only."""
    model, spec = prompt.treatment.model, prompt.spec
    own = model.codec.eos_id
    eos_id = own if own in model.eos_ids else min(model.eos_ids, default=None)
    ids, reason = forced_ids(forced, model.codec, eos_id, prompt.stops, spec.max_tokens)
    scores = None
    if prompt.scored or spec.prompt_top is not None:
        k, beyond = max(spec.top, spec.prompt_top or 0), prompt.treatment.faults.corrupt_beyond
        scores = await engine.score_prompt(model, (*prompt.ids, *ids), k, corrupt_beyond=beyond)
    steps = forced_steps(ids, reason, scores, len(prompt.ids), spec.top)
    if scores is not None and spec.prompt_top is not None:
        steps[0] = replace(steps[0], prompt=scores_of_prompt(scores, len(prompt.ids)))
    text = TextAssembler(model.codec, ())
    pieces = [Piece(text.feed(step.token_id), step, step.finish_reason) for step in steps]
    pieces[-1] = replace(pieces[-1], text=pieces[-1].text + text.finish())
    return pieces
