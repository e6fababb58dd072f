"""Real chat templates and vocabularies: llama.cpp's own, fetched by ``make material`` and never committed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from ringtrue.errors import ModelError

_ROOT = Path(__file__).parent.parent
FOLDER = _ROOT / ".cache" / "llama.cpp-models"
_REQUIREMENT = _ROOT / "requirements" / "material.txt"
_INSIDE = "/vendor/llama.cpp/models/"
_TEMPLATES, _VOCABULARIES = 70, 19


def template_folder() -> Path:
    """Return the folder of the 70 ``*.jinja`` files.

    Raises:
        ModelError: they are not there; the remedy names the command.
    """
    return _whole(FOLDER / "templates", "*.jinja", _TEMPLATES)


def vocabulary_folder() -> Path:
    """Return the folder of the 19 ``ggml-vocab-*.gguf`` files, 15 of them with their ``.inp`` and ``.out``.

    Raises:
        ModelError: they are not there; the remedy names the command.
    """
    return _whole(FOLDER, "ggml-vocab-*.gguf", _VOCABULARIES)


def _whole(folder: Path, pattern: str, count: int) -> Path:
    if len(list(folder.glob(pattern))) != count:
        raise ModelError(
            f"the {count} files {pattern} are not there", where=str(folder), remedy="make material"
        )
    return folder


def fetch() -> None:
    """Fetch the pinned source distribution, check its hash, and put its templates and vocabularies in place.

    Raises:
        ModelError: it cannot be fetched, its hash is another, or a file in it is missing.
    """
    FOLDER.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as scratch:
        archive = _download(Path(scratch))
        unpacked = Path(scratch) / "unpacked"
        _unpack(archive, unpacked)
        _whole(unpacked, "ggml-vocab-*.gguf", _VOCABULARIES)
        _whole(unpacked / "templates", "*.jinja", _TEMPLATES)
        shutil.rmtree(FOLDER, ignore_errors=True)
        unpacked.rename(FOLDER)


def _download(folder: Path) -> Path:
    # pip asks a source distribution for its metadata, by the build backend that it names: seconds, no build.
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "llama-cpp-python"]
    command += ["--require-hashes", "-r", str(_REQUIREMENT), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    archives = list(folder.glob("*.tar.gz"))
    if done.returncode or len(archives) != 1:
        said = [line for line in done.stderr.splitlines() if "ERROR" in line] or ["pip did not say why"]
        raise ModelError(
            f"the source distribution could not be fetched ({said[0]})",
            where=str(_REQUIREMENT),
            remedy="Check the network and pip's settings, then make material",
        )
    return archives[0]


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            _, found, name = member.name.partition(_INSIDE)
            if found and member.isfile() and name.startswith(("templates/", "ggml-vocab-")):
                member.name = name
                tar.extract(member, folder, filter="data")


if __name__ == "__main__":
    try:
        fetch()
    except ModelError as error:
        sys.exit(str(error))
