"""The child is a real process throughout: a program in the place of vLLM's interpreter."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from pathlib import Path

import pytest

from evals.served.vllm_child import ChildPlan, servable_folder, vllm_child, wait_ready
from probes.clock import system_clock
from probes.http_endpoint import connect
from reference_engine.models.names import parse_name
from ringtrue.errors import MeasureError, UsageError
from ringtrue.records import EndpointSpec

ROOT = Path(__file__).parents[3]

_SERVES = """
    import http.server, os, pathlib, subprocess, sys
    if sys.argv[1] == "-c":
        sys.exit(0)  # it "has" vLLM
    port = int(sys.argv[sys.argv.index("--port") + 1])
    grandchild = subprocess.Popen(["sleep", "600"])
    pathlib.Path(__file__).with_suffix(".pids").write_text(f"{os.getpid()} {grandchild.pid}")

    class Models(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b'{"data": [{"id": "ringtrue", "max_model_len": 600}]}'
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    http.server.HTTPServer(("127.0.0.1", port), Models).serve_forever()
"""
_DIES = """
    import sys
    if sys.argv[1] == "-c":
        sys.exit(0)
    print("(Worker pid=7) ERROR 03-01 02:00:00 [worker.py:83] ValueError: the memory is too small")
    print("RuntimeError: Engine core initialization failed. See root cause above.")
    sys.exit(3)
"""


def _interpreter(folder: Path, program: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(program)}")
    path.chmod(0o755)
    return path


def _plan(python: Path, folder: Path) -> ChildPlan:
    return ChildPlan(python, folder, "bf16", context_length=600, max_logprobs=20)


async def _ready(child) -> None:
    spec = EndpointSpec("child", child.url, "ringtrue", dialect="vllm")
    async with aclosing(connect(spec, {})) as endpoint:
        await wait_ready(child, endpoint, system_clock())


def _pids(python: Path) -> list[int]:
    return [int(word) for word in python.with_suffix(".pids").read_text().split()]


@contextmanager
def _must_end(*pids: int) -> Iterator[None]:
    """Processes that run when the block begins and have ended soon after it, whosever children they are."""
    watched = [os.pidfd_open(pid) for pid in pids]
    try:
        assert select.select(watched, [], [], 0)[0] == []
        yield
        for descriptor in watched:
            assert select.select([descriptor], [], [], 60)[0], "a process outlived its parent"
    finally:
        for descriptor in watched:
            os.close(descriptor)


def test_the_child_and_its_children_end_with_the_block(tmp_path: Path) -> None:
    python = _interpreter(tmp_path, _SERVES)
    with ExitStack() as stack:
        child = stack.enter_context(vllm_child(_plan(python, tmp_path)))
        asyncio.run(_ready(child))
        with _must_end(*_pids(python)):
            stack.close()
    assert not child.log.exists()


def test_they_end_as_well_when_this_process_is_killed(tmp_path: Path) -> None:
    python = _interpreter(tmp_path, _SERVES)
    program = f"""
        import asyncio, sys, time
        from pathlib import Path
        from evals.served.vllm_child import vllm_child
        from tests.unit.evals.served.test_vllm_child import _plan, _ready
        with vllm_child(_plan(Path({str(python)!r}), Path({str(tmp_path)!r}))) as child:
            asyncio.run(_ready(child))
            print(child.process.pid, flush=True)
            time.sleep(600)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    guard = int(parent.stdout.readline())
    with _must_end(guard, *_pids(python)):
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    parent.stdout.close()


def test_a_child_that_dies_says_why(tmp_path: Path) -> None:
    python = _interpreter(tmp_path, _DIES)
    with (
        pytest.raises(
            MeasureError, match=r"ended with 3 before it was ready.*the memory is too small$"
        ) as caught,
        vllm_child(_plan(python, tmp_path)) as child,
    ):
        asyncio.run(_ready(child))
    log = Path(str(caught.value.where))
    assert "See root cause above" in log.read_text()
    log.unlink()


@pytest.mark.parametrize(
    ("python", "said"),
    [(Path("/no/such/python"), "cannot be run"), (Path(sys.executable), "vLLM is not installed")],
)
def test_an_interpreter_without_vllm_is_refused(python: Path, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said), vllm_child(_plan(python, tmp_path)):
        pass


@pytest.mark.parametrize("name", ["smollm2-135m", "owner/model@int4"])
def test_what_vllm_cannot_load_by_name_is_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        servable_folder(parse_name(name))
    assert "folder" in (caught.value.remedy or "")


def test_a_folder_is_served_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert servable_folder(parse_name(str(tmp_path))) == tmp_path
