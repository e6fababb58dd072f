"""What one attempt brought from the network, before anybody reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ringtrue.records import Failure, WireChunk
from ringtrue.secrets import Secret

_NOT_KEPT = frozenset({"set-cookie", "authorization", "proxy-authorization", "www-authenticate"})


@dataclass(slots=True)
class Received:
    """Filled while an answer comes in; times are readings of the endpoint's clock (seconds).

    ``failure`` is what the transport met; bytes that came before it are kept.
    """

    sent: float
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: list[WireChunk] = field(default_factory=list)
    failure: Failure | None = None
    end: float | None = None

    @property
    def body(self) -> bytes:
        """All bytes of the body so far."""
        return b"".join(chunk.data for chunk in self.chunks)

    def masked(self, secret: Secret) -> Received:
        """The same without the secret, wherever the server echoed it, and without cookies.

        Chunks keep their lengths and times; a secret that two of them share is found too.
        """
        whole = self.body
        clean = secret.mask(whole)
        chunks = self.chunks if clean == whole else _cut_like(clean, self.chunks)
        headers = {
            name: secret.mask_text(value) for name, value in self.headers.items() if name not in _NOT_KEPT
        }
        failure = self.failure and replace(self.failure, message=secret.mask_text(self.failure.message))
        return replace(self, headers=headers, chunks=chunks, failure=failure)


def _cut_like(data: bytes, chunks: list[WireChunk]) -> list[WireChunk]:
    cut, start = [], 0
    for chunk in chunks:
        end = start + len(chunk.data)
        cut.append(WireChunk(chunk.at, data[start:end]))
        start = end
    return cut
