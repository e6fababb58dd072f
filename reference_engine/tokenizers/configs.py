"""What lies beside a vocabulary file: ``tokenizer_config.json`` and the chat template."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ringtrue.errors import ModelError

CONFIG_NAME: Final = "tokenizer_config.json"
_TEMPLATE_NAME = "chat_template.jinja"
_NAMED: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def read_config(folder: Path) -> dict[str, Any]:
    """Return ``tokenizer_config.json`` of the folder, empty where there is none.

    Raises:
        ModelError: it is no JSON object.
    """
    path = folder / CONFIG_NAME
    if not path.is_file():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"the file cannot be read ({error})", where=str(path)) from error
    if not isinstance(config, dict):
        raise ModelError("the file holds no object", where=str(path))
    return config


def read_template(folder: Path, config: Mapping[str, Any]) -> str | None:
    """Return the source of the chat template, from its own file or the configuration, if there is one."""
    path = folder / _TEMPLATE_NAME
    if path.is_file():
        return path.read_text(encoding="utf-8")
    template = config.get("chat_template")
    return template if isinstance(template, str) else None


def named_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens that have a name, as text: ``bos_token``, ``eos_token``, ..."""
    found = {name: _text(config.get(name)) for name in _NAMED}
    return {name: text for name, text in found.items() if text is not None}


def added_tokens(config: Mapping[str, Any], where: str) -> dict[str, int]:
    """Return the ID of every token in ``added_tokens_decoder``.

    Raises:
        ModelError: the key is there and is no map from ID to token.
    """
    listed = config.get("added_tokens_decoder", {})
    try:
        found = {_text(token): int(token_id) for token_id, token in listed.items()}
    except (AttributeError, ValueError) as error:
        raise ModelError("added_tokens_decoder is no map from ID to token", where=where) from error
    if None in found:
        raise ModelError("a token of added_tokens_decoder has no content", where=where)
    return {text: token_id for text, token_id in found.items() if text is not None}


def _text(token: Any) -> str | None:
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) else None
