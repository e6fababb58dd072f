"""What a database driver's error means, and what to do about it."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

# By the start of SQLite's error name. The kept part is always the same: a write is whole or absent.
_SQLITE = (
    ("SQLITE_FULL", "the disk is full", "Free some space; what was stored before is intact"),
    ("SQLITE_IOERR", "the disk refused to read or write", "Check space, quota and health of the disk"),
    ("SQLITE_READONLY", "may not be written", "Give this user write access to the file and its folder"),
    ("SQLITE_BUSY", "another process holds it", "Wait for it to finish, or stop it"),
    ("SQLITE_LOCKED", "another process holds it", "Wait for it to finish, or stop it"),
    ("SQLITE_CORRUPT", "is damaged", "Restore a copy, or save what `sqlite3 FILE .recover` can read"),
    ("SQLITE_NOTADB", "is not an SQLite database", "Name another file"),
    ("SQLITE_CANTOPEN", "cannot be opened", "Check that it is a file this user may open"),
)

# By the start of SQLSTATE.
_POSTGRESQL = (
    ("53100", "the server's disk is full", "Free some space; what was stored before is intact"),
    ("53", "the server is out of resources", "Try again later"),
    ("28", "the server refused the login", "Check user, and PGPASSWORD or RINGTRUE_STORE__URL"),
    ("3D", "there is no such database", "Create it, or correct store.url"),
    ("42501", "the user may not do this", "Grant it the rights on the database's schema"),
    ("25006", "the server is read-only", "Name the primary in store.url"),
    ("57P", "the server is shutting down or starting", "Try again later"),
)


def describe(error: SQLAlchemyError) -> tuple[str, str]:
    """Return (what is wrong, remedy) in words; statements and their parameters stay out."""
    origin = error.orig if isinstance(error, StatementError) else None
    for attribute, table in (("sqlite_errorname", _SQLITE), ("sqlstate", _POSTGRESQL)):
        code = getattr(origin, attribute, None)
        if code:
            known = [(what, remedy) for start, what, remedy in table if code.startswith(start)]
            what, remedy = known[0] if known else (f"the database refused: {origin}", "Nothing was written")
            return f"{what} ({code})", remedy
    if isinstance(error, DBAPIError):
        reason = str(origin).strip().partition("\n")[0]
        return f"the database cannot be reached: {reason}", "Check that it runs, and store.url"
    if origin is not None:
        return f"a record cannot be stored: {origin}", "This is a fault in ringtrue; please report it"
    return f"the database failed: {type(error).__name__}", "Try again later"
