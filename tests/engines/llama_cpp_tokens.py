"""Tokenize texts with llama.cpp itself, in the engine's interpreter.

python llama_cpp_tokens.py FOLDER < {"vocabulary": ["text", ...]} > {"vocabulary": [[plain, prompt], ...]}

``plain``: special tokens in the text stay text. ``prompt``: they are parsed, and
the model's own go around.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from llama_cpp import Llama


def main() -> None:
    texts: dict[str, list[str]] = json.load(sys.stdin)
    json.dump({name: _ids(Path(sys.argv[1]), name, asked) for name, asked in texts.items()}, sys.stdout)


def _ids(folder: Path, name: str, texts: list[str]) -> list[tuple[list[int], list[int]]]:
    model = Llama(str(folder / f"ggml-vocab-{name}.gguf"), vocab_only=True, verbose=False)
    return [
        (
            model.tokenize(text.encode(), add_bos=False, special=False),
            model.tokenize(text.encode(), add_bos=True, special=True),
        )
        for text in texts
    ]


if __name__ == "__main__":
    main()
