"""Tokenizers in Hugging Face's form: ``tokenizer.json``, and what lies beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.utils import logging

from reference_engine.tokenizers.configs import CONFIG_NAME, read_config
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

JSON_NAME: Final = "tokenizer.json"


def read_json(path: Path) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a ``tokenizer.json``, with the configuration beside it if it has that name.

    Raises:
        ModelError: it is none, or as `read_folder`.
    """
    if path.name == JSON_NAME and (path.parent / CONFIG_NAME).is_file():
        return read_folder(path.parent)
    _check_json(path)
    fast: Any = PreTrainedTokenizerFast
    loaded: PreTrainedTokenizerFast = fast(tokenizer_file=str(path), clean_up_tokenization_spaces=False)
    return loaded


def read_folder(folder: Path) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a folder.

    A ``tokenizer.json`` is taken as it stands, whatever class the configuration
    names: some classes of transformers build their own from its vocabulary,
    with another cut. What goes around a prompt is its own word too. Without
    one, the class that the configuration names has to know how the vocabulary
    is used.

    Raises:
        ModelError: there is no tokenizer, it is damaged, or its class is not known.
    """
    read_config(folder)
    if (folder / JSON_NAME).is_file():
        _check_json(folder / JSON_NAME)
        tokenizer = _loaded(PreTrainedTokenizerFast.from_pretrained, folder)
    else:
        from transformers import AutoTokenizer  # noqa: PLC0415  # brings torch: seconds that others need not wait

        tokenizer = _loaded(AutoTokenizer.from_pretrained, folder)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError("the tokenizer has no fast form (tokenizer.json)", where=str(folder))
    return tokenizer


def _check_json(path: Path) -> None:
    try:
        Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises no class of its own
        raise ModelError(
            f"this is no tokenizer.json ({error})", where=str(path), remedy="Fetch the file again"
        ) from error


def _loaded(load: Callable[..., Any], folder: Path) -> Any:
    noise: Any = logging  # lines about classes and flags mean nothing to whoever opens a tokenizer
    before = noise.get_verbosity()
    noise.set_verbosity_error()
    try:
        return load(str(folder), local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, TypeError, KeyError, ImportError, AttributeError) as error:
        raise ModelError(
            f"the tokenizer cannot be read ({str(error).splitlines()[0]})",
            where=str(folder),
            remedy="Name a folder with a tokenizer.json; one of transformers' own classes does without",
        ) from error
    finally:
        noise.set_verbosity(before)
