"""Noise floors kept in the store: a night's dearest computation, the same every night."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ringtrue.store import FloorTable, Store


@dataclass(frozen=True, slots=True)
class StoredFloors:
    """Implements ``evals.truth.FloorCache``."""

    store: Store

    async def get(self, key: str) -> FloorTable | None:
        """Return the table kept under ``key``."""
        return await asyncio.to_thread(self.store.floor_get, key)

    async def put(self, key: str, table: FloorTable) -> None:
        """Keep ``table`` under ``key``."""
        await asyncio.to_thread(self.store.floor_put, key, table)
