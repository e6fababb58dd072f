"""``ringtrue baseline build`` from a server over real HTTP: an honest one, and those that must be refused."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evals.served.opening import open_served
from evals.served.trust import TrustPlan, require_trust
from logprob_drift.truncated import truncated_kl
from reference_engine.baselines.reading import open_baseline
from reference_engine.baselines.store import BaselineStore
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.cli import COMMANDS, run
from ringtrue.errors import MeasureError, UsageError
from ringtrue.records import EndpointSpec

MODEL = "smollm2-135m"
K = 10
LENGTH = 48
TEXT = (Path(__file__).parents[2] / "probes" / "texts" / "english.txt").read_text()[20_000:24_000]


@pytest.fixture(scope="module")
def corpus(reference: LocalReference) -> list[tuple[int, ...]]:
    ids = reference.encode(TEXT)
    return [ids[start : start + LENGTH] for start in range(0, 9 * LENGTH, LENGTH)]


@contextmanager
def _served(engine: Engine, model: str = f"{MODEL}@bf16", **options: Any) -> Iterator[str]:
    """``ringtrue serve`` on a thread with an event loop of its own."""
    app = create_app(engine, Replica("served", model, **options))
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    address = []

    async def serve() -> None:
        async with serve_app(app) as url:
            address.append(url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def _trust(
    url: str,
    reference: LocalReference,
    corpus: Sequence[Sequence[int]],
    *,
    served_model: str = "",
    k: int = K,
    **plan: Any,
) -> Mapping[str, Any]:
    model = reference.engine.load(MODEL)

    async def examine() -> Mapping[str, Any]:
        async with open_served(
            EndpointSpec("acme", url, served_model, dialect="vllm"),
            {},
            corpus,
            k=k,
            context_length=model.context_length,
            vocabulary_size=model.vocabulary_size,
            rng=np.random.default_rng(0),
        ) as opened:
            assert opened.model == "served"
            return await require_trust(
                opened.source, reference.engine, model, corpus, TrustPlan(k, **plan), say=lambda _: None
            )

    return asyncio.run(examine())


def test_an_honest_server_is_trusted_and_the_figures_say_why(
    engine: Engine, reference: LocalReference, corpus: list[tuple[int, ...]]
) -> None:
    with _served(engine) as url:
        evidence = _trust(url, reference, corpus)
    sample = evidence["sample"]["divergence"]
    assert sample["n"] == len(evidence["sample"]["sequences"]) == 8
    assert 0 < sample["mean"] < 1.5 * sample["floor"]
    assert evidence["prompts"] == 8
    assert evidence["self_test"]["scaling"] == "raw"
    assert set(evidence["checks"]) == {"replay", "k", "temperature", "prefill and decode"}
    assert json.dumps(evidence)  # a manifest can hold it


@pytest.mark.parametrize(
    ("served", "said"),
    [
        ({"model": f"{MODEL}@int4"}, "distributions: "),
        ({"model": f"{MODEL}@int8:layers=0+int3:layers=11"}, "distributions: "),
        ({"faults": Faults(drop_default_system=True)}, "template is not the model's: .*first difference"),
        (
            {"faults": Faults(drop_generation_prompt=True)},
            "template is not the model's: .*20 were used, first difference at token 20",
        ),
        ({"faults": Faults(corrupt_beyond=24)}, "distributions: "),
        ({"faults": Faults(truncate_context=30)}, "(tokenizer|template) is not the model's"),
    ],
)
def test_a_server_of_something_else_is_refused(
    engine: Engine,
    reference: LocalReference,
    corpus: list[tuple[int, ...]],
    served: dict[str, Any],
    said: str,
) -> None:
    with _served(engine, **served) as url, pytest.raises(MeasureError, match=said) as caught:
        _trust(url, reference, corpus)
    assert caught.value.where == "acme"
    assert caught.value.remedy


def test_too_few_sequences_are_refused_as_unmeasured(
    engine: Engine, reference: LocalReference, corpus: list[tuple[int, ...]]
) -> None:
    with _served(engine) as url:
        with pytest.raises(MeasureError, match="6 sequences, and it takes 7"):
            _trust(url, reference, corpus[:6])
        with pytest.raises(UsageError, match="a sample of 3"):
            _trust(url, reference, corpus, sample=3)


def test_what_the_server_will_not_do_is_found_out_beforehand(
    engine: Engine, reference: LocalReference, corpus: list[tuple[int, ...]]
) -> None:
    with _served(engine, max_logprobs=K) as url:
        with pytest.raises(UsageError, match="the 11 likeliest") as caught:
            _trust(url, reference, corpus, k=K + 1)
        assert "--max-logprobs 11" in str(caught.value)
        longest = [*corpus, (1,) * 8_192]  # with the token it generates, one more than the server takes
        with pytest.raises(UsageError, match="8,192 tokens, the server takes 2 to 8,191") as caught:
            _trust(url, reference, longest)
        assert caught.value.where == f"acme, sequence {len(corpus)}"
        with pytest.raises(UsageError, match="nope"):
            _trust(url, reference, corpus, served_model="nope")


def test_nobody_there_is_unmeasured(reference: LocalReference, corpus: list[tuple[int, ...]]) -> None:
    with pytest.raises(MeasureError, match="cannot connect"):
        _trust("http://127.0.0.1:9", reference, corpus)


def test_the_command_builds_a_baseline_that_verifies_and_can_be_read(
    engine: Engine,
    reference: LocalReference,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT[:2_000])
    store = ["--store", str(tmp_path / "store")]
    build = ["baseline", "build", MODEL, str(text), "--length", str(LENGTH), "--k", str(K), *store]
    with _served(engine) as url:
        assert run(COMMANDS, [*build, "--url", url, "--format", "json"]) == 0
        built = json.loads(capsys.readouterr().out)
        assert run(COMMANDS, [*build, "--url", url, "--format", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (built["built"], again["built"]) == (True, False)
    assert again["baseline"] == built["baseline"]
    assert built["baseline"]["source"] == "served"
    assert built["baseline"]["dtype"] == "unknown"  # nobody said
    name = built["baseline"]["id"]
    assert run(COMMANDS, ["baseline", "verify", name, *store, "--format", "json"]) == 0

    read = open_baseline(name, BaselineStore(tmp_path / "store"))
    assert read.manifest.evidence["sample"]["divergence"]["n"] == 8
    manifest = (read.folder / "manifest.json").read_text()
    assert url.removeprefix("http://") not in manifest
    for sequence in read.sequences([0, 5]):
        scores = sequence.scores
        assert scores.entropy is None
        rows = _exact(engine, sequence.token_ids.tolist())
        listed = np.take_along_axis(rows, scores.top_ids.astype(np.int64), axis=1)
        assert truncated_kl(listed, scores.top_logprobs).mean() < 0.005


def test_options_about_a_server_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT[:500])
    build = ["baseline", "build", MODEL, str(text), "--store", str(tmp_path)]
    assert run(COMMANDS, [*build, "--sample", "9"]) == 2
    assert "Add --url or --vllm-python" in capsys.readouterr().err
    both = ["--url", "http://127.0.0.1:9", "--vllm-python", "python"]
    assert run(COMMANDS, [*build, *both]) == 2
    assert "only one of them" in capsys.readouterr().err
    assert run(COMMANDS, [*build, "--states", *both[:2]]) == 2
    assert "hidden states" in capsys.readouterr().err


def _exact(engine: Engine, ids: list[int]) -> np.ndarray:
    model = engine.load(MODEL)
    rows = [engine.start_score(model, ids[:length]).result() for length in range(1, len(ids))]
    return np.stack(rows)
