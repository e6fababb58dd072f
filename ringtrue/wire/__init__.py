"""From bytes to answers: SSE framing and assembly, pure functions of what was received.

Probes, the router and the judges read answers through this package alone, so
that they all see the same answer in the same bytes.
"""

from ringtrue.wire.answer import Answer, assemble_body, assemble_stream, error_text
from ringtrue.wire.sse import Event, SSEDecoder
from ringtrue.wire.strict_json import parse_json

__all__ = ["Answer", "Event", "SSEDecoder", "assemble_body", "assemble_stream", "error_text", "parse_json"]
