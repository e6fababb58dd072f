"""The command itself, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import httpx
import pytest

SERVE = "import typer; from reference_engine.commands import serve; typer.run(serve)"


def _start(*options, **environment):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SERVE, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def test_the_command_serves_with_its_faults_until_it_is_interrupted():
    key = "k-3f9a-planted"
    process = _start(
        "--port", "0", "--served-model-name", "it", "--double-bos", "--api-key", "env:PLANTED", PLANTED=key
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("serving on http://127.0.0.1:")
        client = httpx.Client(
            base_url=line.split()[-1], headers={"authorization": f"Bearer {key}"}, timeout=60
        )
        with client:
            tokens = client.post("/tokenize", json={"prompt": "The"}).json()["tokens"]
            assert tokens == [1, 504]
            assert client.get("/v1/models").json()["data"][0]["id"] == "it"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert key not in output + errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "smollm2-135m@int5"), "int5"),
        (("--api-key", "literal-key-value"), "env:NAME"),
        (("--share", "2"), "share"),
    ],
)
def test_a_wrong_option_ends_the_command_before_anything_is_loaded(options, message):
    process = _start(*options)
    output, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert message in errors
    assert "literal-key-value" not in output + errors


def test_importing_the_command_imports_no_torch():
    probe = "import sys, reference_engine.commands; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
