"""What gRPC carries: names of methods, the fixed parts of requests, settings.

`hello` opens a session: its first answer is the server's, later ones are notes about answers that
took long. `call` asks; large messages go in `part`s before it, large answers are `fetch`ed after it
in pieces, several at a time. All of them carry bytes as they are.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from weft.cluster.rpc.message import Buffer
from weft.cluster.rpc.options import RpcOptions
from weft.cluster.rpc.session import SECRET_BYTES

SERVICE: Final = "weft.cluster"
# What comes before a message has a multiple of 16 bytes, so that its arrays are aligned
REQUEST: Final = struct.Struct(f"<{SECRET_BYTES}sQ8x")  # the session's secret, the call
ANSWER: Final = struct.Struct("<B15x")  # what follows
SPAN: Final = struct.Struct(
    "<QQ"
)  # then, of a part: bytes in all, offset; of a fetch: offset, size
NOTE: Final = struct.Struct("<QB7x")  # before a note: the call, what follows
SIZE: Final = struct.Struct("<Q")

WHOLE, LARGE, LATER = range(3)
"""What an answer holds: the message; its size, to fetch it; nothing, a note will follow."""

PIECE_BYTES: Final = 1 << 21
"""The bytes of a piece: on 2 cores 2 MiB, 3 at a time, move 1.1 GB/s each way; in one piece or
through a stream it is 0.3 to 0.7."""
PIECES_AT_ONCE: Final = 3


def settings(options: RpcOptions) -> list[tuple[str, Any]]:
    """Settings of a gRPC channel or server."""
    every, wait = int(options.patience * 300), int(options.patience * 650)
    return [
        ("grpc.max_receive_message_length", PIECE_BYTES + (1 << 16)),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", max(every, 10)),
        ("grpc.keepalive_timeout_ms", max(wait, 10)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 5),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5),
        ("grpc.http2.max_ping_strikes", 0),
        # Probes of the bandwidth take the place of keepalive's pings, and wait for a minute
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", 4 * PIECE_BYTES),
        ("grpc.http2.ping_timeout_ms", max(wait, 10)),
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 500),
        ("grpc.so_reuseport", 0),
    ]


def pieces_of(parts: list[Buffer]) -> list[list[Buffer]]:
    """Parts of a message grouped into pieces of the right size."""
    pieces: list[list[Buffer]] = [[]]
    room = PIECE_BYTES
    for part in parts:
        view = memoryview(part)
        while len(view):
            if not room:
                pieces.append([])
                room = PIECE_BYTES
            pieces[-1].append(view[:room])
            taken = len(pieces[-1][-1])
            room -= taken
            view = view[taken:]
    return pieces
