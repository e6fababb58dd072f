"""Counts of prompt tokens against those that known templates and faults would give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

Counts = Mapping[str, int]
"""Prompt tokens by the name of the request; a request without a count is left out."""

LEAST = 3  # requests with counts below which nothing is said


@dataclass(frozen=True, slots=True)
class Fit:
    """A hypothesis that explains all counts when ``hidden`` tokens are in every prompt besides.

    ``hidden`` is 0 where the counts are the hypothesis's own. ``requests`` is
    how many counts it was held against.
    """

    name: str
    hidden: int
    requests: int


@dataclass(frozen=True, slots=True)
class Misfit:
    """A hypothesis that no constant explains.

    ``wrong`` are requests whose counts depart by other than the hidden tokens,
    or the commonest departure where their number is not known; in tokens.
    """

    name: str
    wrong: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Consistency:
    """The set of hypotheses that the counts are consistent with, and never one guess.

    ``fits`` are sorted: without hidden tokens first, then by their number.
    ``misfits`` are the others, the nearest first. ``unheld`` are hypotheses
    that share fewer than `LEAST` requests with the counts. Counts can be
    forged, and some servers count only what was not cached: consistent is all
    that can be said.
    """

    requests: int
    fits: tuple[Fit, ...]
    misfits: tuple[Misfit, ...]
    unheld: tuple[str, ...]

    def own(self, honest: str) -> bool | None:
        """Tell whether the counts are consistent with the model's own template and tokenizer.

        ``None`` where too few counts are there to tell. Hidden tokens count as
        consistent here: see the fit's ``hidden``.
        """
        if any(fit.name == honest for fit in self.fits):
            return True
        return False if any(misfit.name == honest for misfit in self.misfits) else None

    @property
    def sentence(self) -> str:
        """What can be said, for a person."""
        if not self.fits and not self.misfits:
            return f"{self.requests} counts of prompt tokens are too few to tell templates apart"
        if not self.fits:
            return (
                f"{self.requests} counts of prompt tokens are consistent with none of "
                f"{len(self.misfits):,} templates and faults; nearest is {self.misfits[0].name}, "
                f"wrong in {len(self.misfits[0].wrong)}"
            )
        names = ", ".join(_named(fit) for fit in self.fits)
        return f"{self.requests} counts of prompt tokens are consistent with: {names}"


@dataclass(frozen=True, slots=True)
class Undetectable:
    """Faults that counts can't tell from the model's own template.

    ``equal`` give the same counts in every request. ``constant`` give as many
    tokens more or fewer in every request: only a server that is known to hide
    no tokens shows them.
    """

    equal: tuple[str, ...]
    constant: Mapping[str, int]


def consistent(
    counts: Counts, library: Mapping[str, Counts], *, hidden: int | None = None, least: int = LEAST
) -> Consistency:
    """Return the hypotheses of ``library`` that explain ``counts`` up to a constant.

    ``hidden`` is that constant where it is known, 0 for a server that adds
    nothing of its own: then faults that add as many tokens to every prompt (a
    second BOS) are told too. ``None`` leaves it free, and they are not.

    Differences between requests cancel what a provider adds to every prompt;
    equal differences are one departure in all requests, so that is what is
    looked for. Only requests with a count on both sides are compared.
    """
    fits: list[Fit] = []
    misfits: list[Misfit] = []
    unheld: list[str] = []
    for name, theirs in library.items():
        departures = {ask: counts[ask] - theirs[ask] for ask in counts if ask in theirs}
        if len(departures) < least:
            unheld.append(name)
            continue
        usual = _usual(departures) if hidden is None else hidden
        wrong = {ask: by - usual for ask, by in departures.items() if by != usual}
        if wrong:
            misfits.append(Misfit(name, wrong))
        else:
            fits.append(Fit(name, usual, len(departures)))
    return Consistency(
        len(counts),
        tuple(sorted(fits, key=lambda fit: (abs(fit.hidden), fit.name))),
        tuple(sorted(misfits, key=lambda misfit: (len(misfit.wrong), misfit.name))),
        tuple(unheld),
    )


def undetectable(library: Mapping[str, Counts], honest: str) -> Undetectable:
    """Return the faults of ``library`` that no server's counts could tell from ``honest``.

    Raises:
        KeyError: ``library`` has no ``honest``.
    """
    own = library[honest]
    equal: list[str] = []
    constant: dict[str, int] = {}
    for name, theirs in library.items():
        departures = {theirs[ask] - own[ask] for ask in own if ask in theirs}
        if name == honest or len(departures) != 1:
            continue
        by = departures.pop()
        if by:
            constant[name] = by
        else:
            equal.append(name)
    return Undetectable(tuple(equal), constant)


def indistinguishable(library: Mapping[str, Counts]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of two or more hypotheses whose counts differ by a constant at most.

    Hypotheses with counts for other requests are never in one group.
    """
    groups: defaultdict[frozenset[tuple[str, int]], list[str]] = defaultdict(list)
    for name, theirs in library.items():
        base = theirs[min(theirs)] if theirs else 0
        groups[frozenset((ask, count - base) for ask, count in theirs.items())].append(name)
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)


def _usual(departures: Mapping[str, int]) -> int:
    """Return the commonest departure, among equals the smallest in size."""
    tally: defaultdict[int, int] = defaultdict(int)
    for by in departures.values():
        tally[by] += 1
    return max(tally, key=lambda by: (tally[by], -abs(by), by))


def _named(fit: Fit) -> str:
    if not fit.hidden:
        return fit.name
    size = f"{abs(fit.hidden):,} token{'s' if abs(fit.hidden) > 1 else ''}"
    return f"{fit.name} with {size} {'more' if fit.hidden > 0 else 'fewer'} in every prompt"
