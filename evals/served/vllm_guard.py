"""Runs one command and ends it, grandchildren included, when whoever started this goes away.

A script of the standard library alone, run by ``evals.served.vllm_child``. Its input
is a pipe that the parent holds open: however the parent ends, also by SIGKILL,
the pipe closes, and the command's whole process group is ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

_PATIENCE = 20.0  # seconds between asking and killing


def guard(command: Sequence[str]) -> int:
    """Run ``command`` until it ends or standard input does; return its exit code."""
    engine = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    signal.signal(signal.SIGTERM, lambda *_: _end(engine))
    threading.Thread(target=_watch, args=(engine,), daemon=True).start()
    try:
        return engine.wait()
    finally:
        _signal_group(engine, signal.SIGKILL)  # what the command left behind


def _watch(engine: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):  # unbuffered: a buffer's lock would be held when this script ends
        pass
    _end(engine)


def _end(engine: subprocess.Popen[bytes]) -> None:
    _signal_group(engine, signal.SIGTERM)
    killer = threading.Timer(_PATIENCE, _signal_group, (engine, signal.SIGKILL))
    killer.daemon = True
    killer.start()


def _signal_group(engine: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(engine.pid, number)


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]))
