"""Whether what is away from a prompt is a cut, and nothing that a template leaves out."""

from __future__ import annotations

from tokenizer_checks.alignment import Run, shared_head
from tokenizer_checks.prompt_turns import PromptTurns
from tokenizer_checks.regions import TOOLS, Region, natural, slides
from tokenizer_checks.turns import Role

FEWEST = 8  # tokens away below which nothing is called a cut
SEAM = 4  # tokens at most in which the ends of a cut text meet
LONG = 64  # tokens missing inside a system prompt above which they are no template's sentence

PREAMBLE = (Role.START, Role.SYSTEM, Role.TOOLS)


def is_cut(region: Region, prompt: PromptTurns) -> bool:
    """Tell whether one run of the prompt is away: its oldest turns, or what is no whole lines or turns."""
    runs = prompt.found.runs
    if len(runs) > 1 or runs[0].added:
        # At most as many tokens as a seam has can lie between the runs of one cut.
        return len(runs) <= SEAM + 1 and _at_characters(prompt)
    if _oldest_turns(region.run, prompt):
        return True
    return runs[0].missing >= FEWEST and _in_mid_text(region, runs[0], prompt)


def _in_mid_text(region: Region, run: Run, prompt: PromptTurns) -> bool:
    # A template that loses its system prompt keeps BOS; one that loses its end keeps the question.
    if _headless(run, prompt) or not _asks_still(run, prompt):
        return True
    if natural(prompt.found.expected, run.start, run.stop, prompt.vocabulary):
        return False
    turn = prompt.turn(run.start)
    if run.start <= 1 or turn is None or turn.role not in PREAMBLE or run.stop > turn.stop:
        return True
    # Inside a system turn sentences and whole definitions of tools are left out too.
    whole = region.text.count("{") == region.text.count("}")
    return not whole or (run.missing >= LONG and not TOOLS.search(region.text))


def _at_characters(prompt: PromptTurns) -> bool:
    """Tell whether one run of a message's text is away, and a few tokens stand where its ends now meet."""
    mine, theirs = prompt.found.expected, prompt.found.used
    head = shared_head(mine, theirs)
    tail = shared_head(mine[head:][::-1], theirs[head:][::-1])
    lost, seam = mine[head : len(mine) - tail], theirs[head : len(theirs) - tail]
    if not seam or len(seam) > SEAM or len(lost) < FEWEST * len(seam):
        return False
    turn = prompt.turn(head)
    if turn is None or turn.role in PREAMBLE or not prompt.vocabulary.special.isdisjoint(lost + seam):
        return False  # what is away of a system prompt, or whole messages, a template left out
    text, left = prompt.vocabulary.text(lost), prompt.vocabulary.text(seam)
    pairs = enumerate(zip(text, left, strict=False))
    before = next((at for at, (a, b) in pairs if a != b), min(len(text), len(left)))
    return bool(left.strip()) and text.endswith(left[before:])


def _oldest_turns(run: Run, prompt: PromptTurns) -> bool:
    """Tell whether the oldest turns are away, a user's among them, as where a window was full."""
    last, expected = prompt.last_user(), prompt.found.expected
    borders = {turn.start for turn in prompt.turns}
    start = next((at for at in slides(expected, run) if {at, at + run.missing} <= borders), None)
    if start is None or last is None or start + run.missing > last.start:
        return False
    lost = [turn.role for turn in prompt.turns if start <= turn.start < start + run.missing]
    front = [turn.role for turn in prompt.turns if turn.start < start]
    return Role.USER in lost and all(role in PREAMBLE for role in front)


def _headless(run: Run, prompt: PromptTurns) -> bool:
    """Tell whether the used prompt begins in the middle of a turn."""
    expected, used, vocabulary = prompt.found.expected, prompt.found.used, prompt.vocabulary
    if run.start > 0:
        return False
    if not used:
        return True
    in_text = used[0] not in vocabulary.special or used[0] in vocabulary.ends
    return expected[0] == vocabulary.bos or (expected[0] in vocabulary.special and in_text)


def _asks_still(run: Run, prompt: PromptTurns) -> bool:
    """Tell whether a lost end leaves the whole text of the last user's turn."""
    last, expected = prompt.last_user(), prompt.found.expected
    if last is None or run.stop < len(expected) or not last.start <= run.start < last.stop:
        return True
    lost = [i for i in expected[run.start : last.stop] if i not in prompt.vocabulary.special]
    return not prompt.vocabulary.text(lost).strip()
