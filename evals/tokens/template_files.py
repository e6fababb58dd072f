"""Chat templates where models keep them: a file of their own, a configuration, a folder, a GGUF file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from reference_engine.tokenizers.gguf_metadata import read_metadata
from reference_engine.tokenizers.gguf_vocabulary import GgufVocabulary
from ringtrue.errors import UsageError

_CONFIGURATIONS = ("tokenizer_config.json", "chat_template.json")
_OWN_FILES = ("chat_template.jinja", "additional_chat_templates/*.jinja")
_REMEDY = "Name a template file, a tokenizer_config.json, a model's folder, or a .gguf file"


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """One template; ``name`` is the file, and the template's own name where the file holds several."""

    name: str
    source: str


def read_templates(paths: Sequence[Path]) -> tuple[TemplateFile, ...]:
    """Return the templates of all paths, in their order.

    Raises:
        UsageError: a path can't be read, or holds no template.
        ModelError: a GGUF file is damaged.
    """
    found: list[TemplateFile] = []
    for path in paths:
        mine = list(_templates(path))
        if not mine:
            raise UsageError("holds no chat template", where=str(path), remedy=_REMEDY)
        found += mine
    return tuple(found)


def _templates(path: Path) -> Iterator[TemplateFile]:
    if path.is_dir():
        # A file of its own goes before the configuration, as in transformers.
        own = [file for pattern in _OWN_FILES for file in sorted(path.glob(pattern))]
        files = own or [path / name for name in _CONFIGURATIONS if (path / name).is_file()]
        for file in files:
            yield from _templates(file)
    elif path.suffix == ".gguf":
        yield from _of_gguf(path)
    elif path.suffix == ".json":
        yield from _of_configuration(path)
    elif _is_template(source := _text(path)):
        yield TemplateFile(str(path), source)


def _is_template(source: str) -> bool:
    """Tell whether a text has anything in it that is not written as it stands."""
    return "{{" in source or "{%" in source


def _of_gguf(path: Path) -> Iterator[TemplateFile]:
    _require_readable(path)
    templates = GgufVocabulary(read_metadata(path), str(path)).templates or {}
    held = {"default": templates} if isinstance(templates, str) else templates
    for name, source in held.items():
        yield TemplateFile(_named(path, name, len(held)), source)


def _of_configuration(path: Path) -> Iterator[TemplateFile]:
    try:
        content = orjson.loads(_text(path))
    except orjson.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error}", where=str(path)) from error
    held = content.get("chat_template") if isinstance(content, dict) else None
    if isinstance(held, str):
        yield TemplateFile(str(path), held)
        return
    entries = held if isinstance(held, list) else []
    for entry in entries:
        name, source = _entry(entry, path)
        yield TemplateFile(_named(path, name, len(entries)), source)


def _entry(entry: Any, path: Path) -> tuple[str, str]:
    if isinstance(entry, dict) and isinstance(entry.get("template"), str):
        return str(entry.get("name", "default")), entry["template"]
    raise UsageError(
        "an entry of chat_template has no name and template",
        where=str(path),
        remedy="Compare it with the model's published one",
    )


def _named(path: Path, name: str, held: int) -> str:
    return str(path) if held == 1 else f"{path} ({name})"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("not a text file (UTF-8)", where=str(path), remedy=_REMEDY) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path), remedy=_REMEDY) from error


def _require_readable(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path), remedy=_REMEDY) from error
