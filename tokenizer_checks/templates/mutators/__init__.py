"""Known faults of servers, each of which changes a prompt's token IDs."""

from tokenizer_checks.templates.mutators.ends import ENDS
from tokenizer_checks.templates.mutators.history import HISTORY
from tokenizer_checks.templates.mutators.mutator import (
    Effect,
    Encode,
    MutatedIds,
    MutatedText,
    Mutator,
    mutate_ids,
    mutate_text,
)
from tokenizer_checks.templates.mutators.system import SYSTEM
from tokenizer_checks.templates.mutators.tokens import TOKENS
from tokenizer_checks.templates.mutators.tools import TOOLS

MUTATORS: tuple[Mutator, ...] = (*ENDS, *SYSTEM, *TOOLS, *HISTORY, *TOKENS)

__all__ = [
    "MUTATORS",
    "Effect",
    "Encode",
    "MutatedIds",
    "MutatedText",
    "Mutator",
    "mutate_ids",
    "mutate_text",
]
