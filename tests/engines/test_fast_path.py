"""Baselines from a real vLLM: as good as the bf16 floor, or refused."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from evals.served.scores import ServedScores
from logprob_drift.night import RATIO
from logprob_drift.truncated import truncated_kl
from probes.http_endpoint import connect
from probes.prompt_logprobs import PromptLogprobs
from reference_engine.baselines.reading import open_baseline
from reference_engine.baselines.store import BaselineStore
from reference_engine.local_reference import LocalReference
from reference_engine.models.rounding import round_to_nearest
from reference_engine.position_scores import PositionScores
from reference_engine.recomputation import recompute
from ringtrue.cli import COMMANDS, run
from ringtrue.records import EndpointSpec, Limits
from tests.engines import servers, templates
from tests.engines.servers import MODEL, ROOT, Server

pytestmark = pytest.mark.engines

REFERENCE = "smollm2-135m"
LENGTH = 128
K = 20
TEXT = (ROOT / "probes" / "texts" / "english.txt").read_text()[100_000:]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("corpus") / "english.txt"
    file.write_text(TEXT[:4_500])
    return file


@pytest.fixture(scope="module")
def vllm_wrong(weights: Path) -> Iterator[Server]:
    """vLLM with the weights in int4 and a template without the default system prompt."""
    with _beside(weights) as folder:
        file = folder / "model.safetensors"
        tensors = load_file(file)
        rounded = {
            name: round_to_nearest(tensor.float(), 4).to(tensor.dtype) if "_proj." in name else tensor
            for name, tensor in tensors.items()
        }
        save_file(rounded, file, metadata={"format": "pt"})
        _mutate_template(folder)
        with servers.vllm(folder, "vllm-wrong") as server:
            yield server


def test_a_baseline_of_an_honest_vllm_is_the_exact_one_within_the_bf16_floor(
    vllm: Server,
    text: Path,
    reference: LocalReference,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    show_baseline: Callable[[str], None],
) -> None:
    store = tmp_path / "store"
    code, built, _ = _build(capsys, REFERENCE, text, store, "--url", vllm.url, "--served-model", MODEL)
    assert code == 0
    assert run(COMMANDS, ["baseline", "verify", built["id"], "--store", str(store)]) == 0
    read = open_baseline(built["id"], BaselineStore(store))
    request = read.manifest.request
    assert request.source["kind"] == "served"
    assert request.source["version"] == "0.32.0"
    sequences = list(read.sequences())
    assert len(sequences) >= 8
    divergences, floors = _against_exact(
        reference,
        [tuple(sequence.token_ids.tolist()) for sequence in sequences],
        [sequence.scores for sequence in sequences],
    )
    show_baseline(
        f"{vllm.name}  {len(sequences)} sequences of {LENGTH} tokens: "
        f"{divergences.mean():.5f} / {floors.mean():.5f}"
    )
    assert 0 < divergences.mean() < RATIO * floors.mean()


def test_a_prefix_cache_plays_no_part_in_a_long_prompt(
    vllm: Server, reference: LocalReference, show_baseline: Callable[[str], None]
) -> None:
    ids = reference.encode(TEXT[:12_000])[:1_600]

    async def fetch() -> list[PromptLogprobs]:
        spec = EndpointSpec("vllm", vllm.url, MODEL, dialect="vllm", limits=Limits(first_byte_timeout=600.0))
        async with aclosing(connect(spec, {})) as endpoint:
            source = ServedScores(
                endpoint, context_length=4_095, vocabulary_size=49_152, rng=np.random.default_rng(0)
            )
            return [await source.fetch(ids, k=K, name=name) for name in ("first", "again")]

    first, again = asyncio.run(fetch())
    assert np.array_equal(first.top_logprobs, again.top_logprobs)
    assert np.array_equal(first.logprobs, again.logprobs)
    (divergence,), (floor,) = _against_exact(reference, [ids], [first])
    show_baseline(f"{vllm.name}  one sequence of {len(ids):,} tokens: {divergence:.5f} / {floor:.5f}")
    assert 0 < divergence < RATIO * floor


def test_a_wrong_template_is_refused(
    vllm_wrong: Server, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, said = _build(capsys, REFERENCE, text, tmp_path, "--url", vllm_wrong.url)
    assert code == 3
    assert "template is not the model's" in said
    assert "first difference at token" in said


def test_wrong_weights_are_refused(
    vllm_wrong: Server, text: Path, weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _beside(weights) as folder:
        _mutate_template(folder)  # so that nothing but the weights is wrong
        code, _, said = _build(capsys, str(folder), text, tmp_path, "--url", vllm_wrong.url)
    assert code == 3
    assert "no baseline is built from this server: distributions: " in said


def test_vllm_is_started_for_a_folder_and_ended(
    weights: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = ROOT / ".venv-vllm" / "bin" / "python"
    code, built, said = _build(capsys, str(weights), text, tmp_path, "--vllm-python", str(python))
    assert code == 0, said
    assert (built["source"], built["dtype"]) == ("served", "bf16")
    port = said.partition("http://127.0.0.1:")[2].partition(",")[0]
    assert not [
        line for line in Path("/proc").glob("[0-9]*/cmdline") if f"--port\0{port}\0" in _command(line)
    ]


def _build(
    capsys: pytest.CaptureFixture[str], model: str, text: Path, store: Path, *options: str
) -> tuple[int, dict, str]:
    command = ["baseline", "build", model, str(text), "--length", str(LENGTH), "--k", str(K)]
    code = run(COMMANDS, [*command, "--store", str(store), "--format", "json", *options])
    printed = capsys.readouterr()
    return code, json.loads(printed.out)["baseline"] if printed.out else {}, printed.err


def _against_exact(
    reference: LocalReference,
    sequences: list[tuple[int, ...]],
    served: list[PositionScores] | list[PromptLogprobs],
) -> tuple[np.ndarray, np.ndarray]:
    """The mean divergence of each sequence from the exact distributions, and that of an honest server."""
    engine = reference.engine
    model = engine.load(REFERENCE)
    listed = [scores.top_ids for scores in served]
    exact = asyncio.run(recompute(engine, model, sequences, listed, k=K, dtype="bf16", seed=0))
    pairs = list(zip(served, exact, strict=True))
    return (
        np.array([truncated_kl(one.exact, scores.top_logprobs).mean() for scores, one in pairs]),
        np.array([truncated_kl(one.exact_honest, one.honest.top_logprobs).mean() for _, one in pairs]),
    )


@contextmanager
def _beside(weights: Path) -> Iterator[Path]:
    """A copy of the exported weights, where vLLM may be told to look for it."""
    folder = Path(tempfile.mkdtemp(dir=servers.CACHE))
    try:
        shutil.copytree(weights, folder, dirs_exist_ok=True)
        yield folder
    finally:
        shutil.rmtree(folder)


def _mutate_template(folder: Path) -> None:
    file = folder / "chat_template.jinja"
    file.write_text(templates.mutate(file.read_text(), "default-system-dropped"))


def _command(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:  # it ended meanwhile
        return ""
