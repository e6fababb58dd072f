"""The kinds of variants that a model name can ask for."""

from __future__ import annotations

DTYPES = ("fp32", "bf16", "fp16")
INTEGERS = {"int8": 8, "int4": 4, "int3": 3}
FLOATS = ("fp8", "fp8-dynamic")
GGUF_TYPES = ("q8_0", "q6_k", "q5_1", "q5_0", "q4_1", "q4_0")
WEIGHTS = (*INTEGERS, *FLOATS, *GGUF_TYPES)
CACHES = ("kv-fp8", "kv-int8")
ROUNDINGS = (*WEIGHTS, *CACHES)
CHANGES = ("rope", "tuned")

DEFAULT_GROUP = 32
