"""What libraries write to the terminal of a program that only loads a model."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from transformers import modeling_gguf_pytorch_utils, utils
from transformers.utils import import_utils
from transformers.utils import logging as transformers_logging

_NOISY = ("torchao", "torch.utils._pytree")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers' progress bars and reports off the terminal while a model loads.

    Its modules are first imported inside, and would import torchao wherever
    that is installed: seconds, and lines about libraries and deprecations that
    mean nothing to whoever loads a model. They are told that there is none.
    """
    library: Any = transformers_logging
    gguf_reader: Any = modeling_gguf_pytorch_utils  # takes tqdm directly and has no switch of its own
    replaced = [
        (gguf_reader, "tqdm", _plain),
        (utils, "is_torchao_available", _absent),
        (import_utils, "is_torchao_available", _absent),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    bars, verbosity = library.is_progress_bar_enabled(), library.get_verbosity()
    library.disable_progress_bar()
    library.set_verbosity_error()
    _set_all(replaced)
    try:
        yield
    finally:
        _set_all(before)
        library.set_verbosity(verbosity)
        if bars:
            library.enable_progress_bar()


@contextmanager
def quiet_torchao() -> Iterator[None]:
    """Keep torchao's remarks on its own build off the terminal while it is imported."""
    loggers = [logging.getLogger(name) for name in _NOISY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _set_all(attributes: Iterable[tuple[Any, str, Any]]) -> None:
    for module, name, value in attributes:
        setattr(module, name, value)


def _plain(iterable: Iterable[Any], **_: Any) -> Iterable[Any]:
    return iterable


def _absent(*_: Any, **__: Any) -> bool:
    return False
