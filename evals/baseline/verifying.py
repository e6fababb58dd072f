"""``ringtrue baseline verify``: the bytes, and a sample computed again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np

from reference_engine.baselines.integrity import CheckedFile, check_files
from reference_engine.baselines.reading import Baseline
from reference_engine.baselines.recomputing import Agreement, Recomputed, choose_sequences, recompute
from reference_engine.baselines.store import StoredBaseline
from reference_engine.engine import Engine
from ringtrue.exit_codes import ExitCode
from ringtrue.progress import ProgressReport

_FILES = "files"
_SEQUENCES = "sequences"


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What to compute again: ``count`` sequences drawn by ``seed``, by ``model`` or the manifest's own."""

    count: int
    model: str | None = None
    device: str = "auto"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found. Nothing is recomputed where a file is damaged."""

    baseline: StoredBaseline
    files: tuple[CheckedFile, ...]
    recomputed: tuple[Recomputed, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """Drift where a sequence differs, unmeasured where files are damaged or no tolerance is known."""
        found = {result.agreement for result in self.recomputed}
        if Agreement.DIFFERENT in found:
            return ExitCode.DRIFT
        damaged = any(file.damage for file in self.files)
        return ExitCode.UNMEASURED if damaged or Agreement.UNDECIDED in found else ExitCode.FINE


def verify_baseline(stored: StoredBaseline, asked: Recomputation, progress: ProgressReport) -> Verification:
    """Check every file of a baseline, and as many sequences as ``asked`` says.

    Raises:
        UsageError, ModelError, MeasureError: as ``recompute``.
    """
    progress.begin(_FILES, len(stored.manifest.shards) + 1)
    files = []
    for checked in check_files(stored):
        files.append(checked)
        progress.advance(_FILES)
    if asked.count == 0 or any(file.damage for file in files):
        return Verification(stored, tuple(files))
    return Verification(stored, tuple(files), tuple(asyncio.run(_recomputed(stored, asked, progress))))


async def _recomputed(
    stored: StoredBaseline, asked: Recomputation, progress: ProgressReport
) -> list[Recomputed]:
    baseline = Baseline(stored)
    indices = choose_sequences(baseline, asked.count, np.random.default_rng(asked.seed))
    results = []
    with Engine(device=asked.device) as engine:
        name = asked.model or stored.manifest.request.model.name
        model = await asyncio.wrap_future(engine.start_load(name))
        progress.begin(_SEQUENCES, len(indices))
        async for result in recompute(baseline, engine, model, indices):
            results.append(result)
            progress.advance(_SEQUENCES)
    baseline.close()
    return results
