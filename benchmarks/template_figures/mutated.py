"""Every known fault on every chat of one template: is it seen, and is it named right?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ringtrue.errors import ModelError
from tokenizer_checks.alignment import nearest
from tokenizer_checks.blame import blame
from tokenizer_checks.difference import difference
from tokenizer_checks.templates.fixtures import Fixture
from tokenizer_checks.templates.model import ModelPrompts
from tokenizer_checks.templates.mutators import MUTATORS

LAYERS = {one.name: one.layer.value for one in MUTATORS}


@dataclass(frozen=True, slots=True)
class Told:
    """What was said of one fault in one chat.

    ``layer`` is read from the difference alone. ``same`` are all known faults
    that give the same IDs, as the judge names them; ``tokens`` how many
    tokens differ.
    """

    fixture: str
    mutator: str
    seen: bool
    layer: str
    same: tuple[str, ...]
    tokens: int

    @property
    def right(self) -> bool:
        """Whether the layer is the fault's."""
        return self.layer == LAYERS[self.mutator]

    @property
    def right_of_equals(self) -> bool:
        """Whether the layer is that of some known fault with the same IDs: nothing tells them apart."""
        return self.layer in {LAYERS[name] for name in self.same}

    @property
    def named(self) -> bool:
        """Whether the fault is among those named."""
        return self.mutator in self.same

    @property
    def of_one_layer(self) -> bool:
        """Whether all that are named blame one layer."""
        return len({LAYERS[name] for name in self.same}) == 1


def told(prompts: ModelPrompts, chats: Sequence[Fixture], now: datetime) -> Iterator[Told]:
    """Yield what is said of every fault that changes the IDs of a chat; refused chats are left out."""
    for fixture in chats:
        try:
            days = prompts.days(fixture.chat, now)
        except ModelError:
            continue
        faults = prompts.faults(fixture.chat, now)
        for name, used in faults.items():
            found = difference(nearest(days, used), used, prompts.vocabulary)
            if found is None:
                yield Told(fixture.name, name, False, "unseen", (), 0)
                continue
            said = blame(found, prompts.vocabulary, faults)
            size = max(found.missing, found.added)
            yield Told(fixture.name, name, True, said.layer.value, said.mutations, size)


@dataclass(slots=True)
class Tally:
    """How many of a group were seen and named right."""

    n: int = 0
    seen: int = 0
    right: int = 0
    right_of_equals: int = 0
    named: int = 0
    of_one_layer: int = 0
    instead: Counter[str] = field(default_factory=Counter)

    def add(self, one: Told) -> None:
        """Count one more."""
        self.n += 1
        self.seen += one.seen
        self.right += one.right
        self.right_of_equals += one.right_of_equals
        self.named += one.named
        self.of_one_layer += one.of_one_layer
        if not one.right_of_equals:
            self.instead[one.layer] += 1


def tallies(rows: Iterator[tuple[str, Told]]) -> tuple[dict[str, Tally], dict[str, dict[str, Tally]]]:
    """Return the tallies by mutator, and by template and mutator."""
    by_mutator: dict[str, Tally] = defaultdict(Tally)
    by_template: dict[str, dict[str, Tally]] = defaultdict(lambda: defaultdict(Tally))
    for template, one in rows:
        by_mutator[one.mutator].add(one)
        by_template[template][one.mutator].add(one)
    return by_mutator, by_template
