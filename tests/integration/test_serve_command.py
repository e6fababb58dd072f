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


def _draw(client, prompts, **fields):
    body = {"model": "it", "prompt": prompts, "max_tokens": 1, "return_token_ids": True}
    answer = client.post("/v1/completions", json=body | fields)
    return [choice["token_ids"][0] for choice in answer.json()["choices"]]


def test_the_command_serves_with_its_faults_until_it_is_interrupted():
    key = "k-3f9a-planted"
    options = ["--double-bos", "--ignore-temperature", "--api-key", "env:PLANTED"]
    process = _start("--port", "0", "--served-model-name", "it", *options, PLANTED=key)
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
            assert len(set(_draw(client, ["The"] * 20, temperature=2))) == 1
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert key not in output + errors
    assert "Traceback" not in errors


def test_faults_of_sampling_are_options(small_engine, small, small_model):
    ids = [60, 61, 62]
    options = ["--temperature-factor", "1e6", "--top-k", "3", "--drop-top-token", "--ignore-seed"]
    process = _start("--port", "0", "--served-model-name", "it", "--model", str(small_model), *options)
    try:
        url = process.stdout.readline().split()[-1]
        with httpx.Client(base_url=url, timeout=60) as client:
            # So cold that one token would be certain, did the factor not make all equal.
            drawn = _draw(client, [ids] * 60, temperature=1e-3, seed=1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    best = small_engine.start_score(small, ids).result().argsort()[::-1]
    assert set(drawn) == set(best[1:4].tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "smollm2-135m@int5"), "int5"),
        (("--api-key", "literal-key-value"), "env:NAME"),
        (("--share", "2"), "share"),
        (("--temperature-factor", "0"), "must be a positive number"),
        (("--model", "smollm2-135m@rope:base=0"), "rope:base=500000"),
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
