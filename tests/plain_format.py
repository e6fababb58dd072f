"""The prompt side of a reference that has neither template nor markers, for references made for tests."""

from __future__ import annotations

from types import MappingProxyType


class PlainFormat:
    template = tool_template = None
    special_tokens = MappingProxyType({})
    special_ids = end_ids = frozenset()
    bos_id = None

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        return self.encode(text)
