"""vLLM's server as a child of this process, run by an interpreter that has vLLM."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from probes.clock import Clock
from reference_engine.models.names import ModelName
from reference_engine.models.sources import find_source
from ringtrue.endpoint import Endpoint
from ringtrue.errors import MeasureError, UsageError

SERVED_MODEL = "ringtrue"
"""The name under which the child serves."""

READY_WITHIN = 900.0  # seconds; large weights take minutes to load
_PAUSE = 0.5  # seconds between two looks
_STOPPED_WITHIN = 60.0  # seconds; the guard kills what does not end by itself in 20
_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
_DEFAULTS = {"VLLM_CPU_KVCACHE_SPACE": "2"}  # GiB; without it vLLM claims most of the memory of a CPU
_CAUSE = re.compile(r"(?:^|\] )(\w+(?:Error|Exception): .+)$", re.MULTILINE)
_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """What to start: vLLM by ``python`` on ``folder``, in ``dtype``, with this context (tokens)."""

    python: Path
    folder: Path
    dtype: str
    context_length: int
    max_logprobs: int


@dataclass(frozen=True, slots=True)
class Child:
    """A started vLLM. ``url`` is its address; it answers once `wait_ready` returned."""

    url: str
    log: Path
    process: subprocess.Popen[bytes]


def servable_folder(name: ModelName) -> Path:
    """Return the folder with the weights of a model that vLLM can serve under that name.

    Raises:
        ModelError: there is no such model.
        UsageError: the name is of a GGUF file or a variant, which vLLM does not load as it is meant.
    """
    remedy = "Name a folder with config.json and .safetensors, as save_pretrained writes it"
    if not name.is_base:
        raise UsageError("vLLM cannot serve a variant by its name", where=str(name), remedy=remedy)
    source = find_source(name.base)
    if source.gguf_file is not None:
        raise UsageError("vLLM is not given a GGUF file", where=str(name), remedy=remedy)
    return source.folder


@contextmanager
def vllm_child(plan: ChildPlan) -> Iterator[Child]:
    """Start vLLM on a free loopback port, and end it and all its processes when the block ends.

    It also ends when this process is killed. The log is kept if the block fails.

    Raises:
        UsageError: the interpreter is missing or has no vLLM.
    """
    _require_vllm(plan.python)
    port = _free_port()
    guard = Path(__file__).with_name("vllm_guard.py")
    descriptor, log = tempfile.mkstemp(prefix="ringtrue-vllm-", suffix=".log")
    with os.fdopen(descriptor, "wb") as sink:
        process = subprocess.Popen(  # noqa: S603  the interpreter that the user named
            [sys.executable, str(guard), *_command(plan, port)],
            env={**_DEFAULTS, **os.environ, **_ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us; we then end the child in order
        )
    try:
        yield Child(f"http://127.0.0.1:{port}", Path(log), process)
    finally:
        _stop(process)
    Path(log).unlink()


async def wait_ready(child: Child, endpoint: Endpoint, clock: Clock) -> None:
    """Return once ``endpoint``, which leads to the child, lists a model.

    Raises:
        MeasureError: the child ended, or was not ready in time; the end of its log is quoted.
    """
    give_up = clock.monotonic() + READY_WITHIN
    while child.process.poll() is None:
        if (await endpoint.call("GET", "/v1/models")).error is None:
            return
        if clock.monotonic() > give_up:
            raise _failed(f"was not ready after {READY_WITHIN:.0f} s", child)
        await clock.sleep(_PAUSE)
    raise _failed(f"ended with {child.process.returncode} before it was ready", child)


def _command(plan: ChildPlan, port: int) -> list[str]:
    return [
        *(str(plan.python), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(plan.folder), "--served-model-name", SERVED_MODEL),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--dtype", _DTYPES[plan.dtype], "--max-model-len", str(plan.context_length)),
        *("--max-logprobs", str(plan.max_logprobs), "--enforce-eager", "--no-enable-prefix-caching"),
    ]


def _require_vllm(python: Path) -> None:
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    try:
        done = subprocess.run(  # noqa: S603  the interpreter that the user named
            [str(python), "-c", look], capture_output=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            "the interpreter cannot be run",
            where=str(python),
            remedy="Name the python of an environment with vLLM: --vllm-python PATH/bin/python",
        ) from error
    if done.returncode:
        raise UsageError(
            "vLLM is not installed for this interpreter",
            where=str(python),
            remedy="Install it there, or name another one with --vllm-python",
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()  # the guard ends the group
    try:
        process.wait(_STOPPED_WITHIN)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()


def _failed(what: str, child: Child) -> MeasureError:
    log = child.log.read_text(errors="replace")
    # What vLLM says last is only that something failed "above".
    cause = _CAUSE.search(log)
    lines = [line for line in log.splitlines() if line.strip()]
    said = cause[1] if cause else " | ".join(lines[-_LAST_LINES:])
    return MeasureError(f"vLLM {what}. It says: {said}", where=str(child.log))
