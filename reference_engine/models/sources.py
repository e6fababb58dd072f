"""Where a base model's files are: the embedded one, a GGUF file, a folder, or a Hugging Face id."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from reference_engine.models.embedded import EMBEDDED_NAME, embedded_file
from ringtrue.errors import ModelError

_WEIGHTS = "*.safetensors"
_OTHER_FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "chat_template.jinja",
)
_WORDS = ["*.json", "*.model", "*.jinja", "*.txt", "*.tiktoken"]
_DOWNLOAD = [_WEIGHTS, "*.json", "*.model", "*.jinja", "*.txt"]


@dataclass(frozen=True, slots=True)
class Source:
    """A folder that transformers can load from, and the GGUF file in it if that is the form."""

    folder: Path
    gguf_file: str | None = None

    @property
    def weight_files(self) -> list[Path]:
        """The files that hold the weights, in the order of their names."""
        if self.gguf_file is not None:
            return [self.folder / self.gguf_file]
        return sorted(self.folder.glob(_WEIGHTS))

    def weights_hash(self) -> str:
        """Return the sha256 over the files with the weights, as 64 hex digits."""
        return _hash_files(self.weight_files)

    def fingerprint(self, weights_hash: str) -> str:
        """Return the sha256 over weights, configuration, tokenizer and template, as 64 hex digits.

        ``weights_hash`` is what ``weights_hash()`` gave: gigabytes are read
        once. A GGUF file holds all four.
        """
        rest = [] if self.gguf_file is not None else [self.folder / name for name in _OTHER_FILES]
        others = _hash_files([file for file in rest if file.is_file()])
        return hashlib.sha256((weights_hash + others).encode()).hexdigest()


def _hash_files(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(file.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def find_source(base: str) -> Source:
    """Return the files of the model that ``base`` names.

    A Hugging Face id is looked up in the local cache first, so that a cached
    model needs no network and does not change underfoot.

    Raises:
        ModelError: nothing is found under that name, or it has no weights.
    """
    if base == EMBEDDED_NAME:
        file = embedded_file()
        return Source(file.parent, file.name)
    path = Path(base).expanduser()
    if path.is_file() and path.suffix == ".gguf":
        return Source(path.parent, path.name)
    if path.is_dir():
        return _folder_source(path)
    _require_id(base, path)
    return _cached_source(base) or _downloaded_source(base)


def find_tokenizer(base: str) -> Path:
    """Return where the tokenizer of the model that ``base`` names is: a file or a folder.

    Unlike `find_source` it asks for no weights, and of a Hugging Face id it
    fetches none.

    Raises:
        ModelError: nothing is found under that name.
    """
    if base == EMBEDDED_NAME:
        return embedded_file()
    path = Path(base).expanduser()
    if path.exists():
        return path
    _require_id(base, path)
    try:
        folder = Path(snapshot_download(base, allow_patterns=_WORDS, local_files_only=True))
    except LocalEntryNotFoundError:
        return _fetched(base, _WORDS)
    except HFValidationError as error:
        raise ModelError(str(error), where=repr(base)) from error
    return folder if any(folder.glob("tokenizer*")) else _fetched(base, _WORDS)


def _require_id(base: str, path: Path) -> None:
    if path.suffix == ".gguf" or base.startswith((".", "/", "~")) or base.count("/") != 1:
        raise ModelError(
            f"there is no model {base!r}",
            remedy=f"Name {EMBEDDED_NAME}, a Hugging Face id (owner/name), a folder, or a .gguf file",
        )


def _folder_source(folder: Path) -> Source:
    if not (folder / "config.json").is_file() or not any(folder.glob(_WEIGHTS)):
        raise ModelError(
            "the folder holds no config.json with .safetensors weights",
            where=str(folder),
            remedy="Name a folder written by save_pretrained, or a .gguf file itself",
        )
    return Source(folder)


def _cached_source(model_id: str) -> Source | None:
    try:
        folder = Path(snapshot_download(model_id, allow_patterns=_DOWNLOAD, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise ModelError(str(error), where=repr(model_id)) from error
    return Source(folder) if any(folder.glob(_WEIGHTS)) else None


def _downloaded_source(model_id: str) -> Source:
    return _folder_source(_fetched(model_id, _DOWNLOAD))


def _fetched(model_id: str, patterns: list[str]) -> Path:
    try:
        return Path(snapshot_download(model_id, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelError(
            f"the model is not in the local cache and could not be fetched ({type(error).__name__})",
            where=repr(model_id),
            remedy="Check the id and the network, or name a local folder or .gguf file",
        ) from error
