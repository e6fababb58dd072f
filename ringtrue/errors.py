"""Every exception that crosses a package border.

::

    RingtrueError
    ├── ConfigError          a setting is wrong; names the key           exit 2
    │   └── SecretError      an ``env:NAME`` reference has no value      exit 2
    ├── UsageError           a command's arguments do not fit            exit 2
    ├── ModelError           a model cannot be loaded or named           exit 2
    ├── BudgetError          the run would cost more than it may         exit 2
    ├── MeasureError         nothing could be measured                   exit 3
    └── StoreError           the database refused or cannot be used      exit 3
        ├── NewerStoreError  written by a newer ringtrue                 exit 2
        └── LeaseHeldError   another cycle is running                    exit 3

What an endpoint does wrong is no exception but a ``records.Failure`` inside
its exchange: a failed request is an observation.
"""

from __future__ import annotations


class RingtrueError(Exception):
    """Root of the tree.

    ``message`` says what was wrong, ``where`` names the file, key or endpoint,
    ``remedy`` what to do about it. None of them ever holds a secret.
    """

    exit_code = 3

    def __init__(self, message: str, *, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        """Return one line: where, what, and the remedy."""
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head}. {self.remedy}" if self.remedy else head


class ConfigError(RingtrueError):
    """A setting is wrong; ``where`` names the file and the key."""

    exit_code = 2


class SecretError(ConfigError):
    """An ``env:NAME`` reference has no value in the environment."""


class UsageError(RingtrueError):
    """A command's arguments do not fit together."""

    exit_code = 2


class ModelError(RingtrueError):
    """A model cannot be found, loaded or parsed from its name."""

    exit_code = 2


class BudgetError(RingtrueError):
    """The run would cost more than its budget; nothing was sent."""

    exit_code = 2


class MeasureError(RingtrueError):
    """Nothing could be measured."""


class StoreError(RingtrueError):
    """The database refused a write or cannot be used, or a stored baseline is damaged."""


class NewerStoreError(StoreError):
    """The database or baseline was written by a newer ringtrue; this one leaves it alone."""

    exit_code = 2


class LeaseHeldError(StoreError):
    """Another cycle holds the lease."""
