"""Quantize float32 weights with llama.cpp's own library, in the engine's interpreter.

python ggml_quantize.py TYPE COLUMNS < float32 weights > what the file would hold
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import llama_cpp

_TYPES = {"q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q6_k": 14}  # enum ggml_type


def main() -> None:
    kind, columns = _TYPES[sys.argv[1]], int(sys.argv[2])
    weights = sys.stdin.buffer.read()
    rows = len(weights) // 4 // columns
    library = ctypes.CDLL(str(Path(llama_cpp.__file__).parent / "lib" / "libggml-base.so"))
    library.ggml_row_size.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    size = library.ggml_row_size(ctypes.c_int(kind), ctypes.c_int64(columns)) * rows
    held = ctypes.create_string_buffer(size)
    written = library.ggml_quantize_chunk(
        ctypes.c_int(kind),
        ctypes.c_char_p(weights),
        held,
        ctypes.c_int64(0),
        ctypes.c_int64(rows),
        ctypes.c_int64(columns),
        None,
    )
    if written != size:
        raise SystemExit(f"wrote {written} of {size} bytes")
    sys.stdout.buffer.write(held.raw)


if __name__ == "__main__":
    main()
