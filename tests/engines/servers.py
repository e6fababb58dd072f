"""Real engines as child processes: the weights they serve, their start, their end.

``make engines`` sets up one environment for each engine. A missing environment
or a server that does not come up is an error with its remedy, never a skip:
a night without the engines proves nothing about them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "engines"
MODEL = "smollm2"
"""The name under which both engines serve the embedded model."""

READY_WITHIN = 300.0  # seconds; a quiet machine needs 25 to 60
STOPPED_WITHIN = 30.0


class EngineError(RuntimeError):
    """An engine could not be set up or started; the message holds the remedy or the log's end."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running engine: ``url`` is the server's root, without ``/v1``."""

    name: str
    url: str
    log: Path


def exported_weights(gguf: Path) -> Path:
    """The bfloat16 folder of ``gguf`` for vLLM, written once for each pair of model and exporter."""
    exporter = Path(__file__).with_name("export_weights.py")
    key = hashlib.sha256(gguf.read_bytes() + exporter.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"bf16-{key}"
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        command = [sys.executable, str(exporter), str(gguf), str(draft)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineError(f"cannot export {gguf.name} to bfloat16:\n{done.stderr[-2000:]}")
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # gone already when it was renamed
    return folder


@contextlib.contextmanager
def vllm(weights: Path, name: str, *flags: str) -> Iterator[Server]:
    """vLLM on CPU serving ``weights`` in bfloat16, promising 4,096 of the model's 8,192 tokens."""
    port = free_port()
    command = [
        *(_python("vllm"), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(weights.relative_to(ROOT)), "--served-model-name", MODEL),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--max-model-len", "4096", "--enforce-eager", "--dtype", "bfloat16", "--max-logprobs", "100"),
        *("--return-tokens-as-token-ids", "--enable-prompt-tokens-details"),
        *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
        "--trust-request-chat-template",  # lets one server render mutated templates
        *flags,
    ]
    offline = {
        "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    with running(name, command, port, ready="/health", environment=offline) as server:
        yield server


@contextlib.contextmanager
def llama_cpp(gguf: Path, name: str) -> Iterator[Server]:
    """The llama-cpp-python server on the GGUF file itself."""
    port = free_port()
    command = [
        *(_python("llama"), "-m", "llama_cpp.server", "--model", str(gguf), "--model_alias", MODEL),
        *("--host", "127.0.0.1", "--port", str(port), "--n_ctx", "4096", "--logits_all", "True"),
    ]
    with running(name, command, port, ready="/v1/models", environment={}) as server:
        yield server


def free_port() -> int:
    """A loopback port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _python(engine: str) -> str:
    """The interpreter of the engine's own environment."""
    python = ROOT / f".venv-{engine}" / "bin" / "python"
    if not python.exists():
        raise EngineError(f"{python.relative_to(ROOT)} is missing. `make engines` sets it up.")
    return str(python)


@contextlib.contextmanager
def running(
    name: str, command: Sequence[str], port: int, *, ready: str, environment: Mapping[str, str]
) -> Iterator[Server]:
    """Run ``command`` until the block ends; enter it once GET ``ready`` succeeds.

    Raises:
        EngineError: the process ended or stayed silent; the message holds the end of its log.
    """
    log = CACHE / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # vLLM's engine is a grandchild: the whole group must end
        )
    try:
        server = Server(name, f"http://127.0.0.1:{port}", log)
        _await_ready(process, server, ready)
        yield server
    finally:
        _stop(process)


def _await_ready(process: subprocess.Popen[bytes], server: Server, path: str) -> None:
    deadline = time.monotonic() + READY_WITHIN
    with httpx.Client(base_url=server.url, trust_env=False, timeout=5.0) as client:
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):  # not listening yet
                if client.get(path).is_success:
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=0.25)  # the pause between two looks, cut short by a death
                raise EngineError(f"{server.name} ended with {code} before it was ready\n{_tail(server.log)}")
    raise EngineError(f"{server.name} was not ready after {READY_WITHIN:.0f} s\n{_tail(server.log)}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group; a group that ignores the request is killed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=STOPPED_WITHIN)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-40:]
    return "\n".join([f"the end of {log.relative_to(ROOT)}:", *lines])
