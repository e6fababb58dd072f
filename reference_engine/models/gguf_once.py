"""One reading of a GGUF file for one load.

transformers parses the file anew for configuration and weights, and
builds the map of tensor names anew for each of some hundred modules: most of
the seconds that a load takes. Neither can be passed in, so while a model loads
both are remembered.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gguf


@contextmanager
def read_once() -> Iterator[None]:
    """Make ``gguf`` parse each file and each name map once while open.

    For one thread at a time: the engine thread loads all models.
    """
    library: Any = gguf
    parse, name_map = library.GGUFReader, library.get_tensor_name_map

    @functools.cache
    def parsed(path: str) -> Any:
        return parse(path)

    def reader(path: Any, *_: Any) -> Any:
        return parsed(str(path))

    library.GGUFReader = reader
    library.get_tensor_name_map = functools.cache(name_map)
    try:
        yield
    finally:
        library.GGUFReader, library.get_tensor_name_map = parse, name_map
