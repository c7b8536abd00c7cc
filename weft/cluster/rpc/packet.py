"""Packets of the UNIX socket between two processes of a host.

A packet is a fixed header, references to arrays in shared memory, the JSON head of a message and
the bytes of its small arrays. The files of the memory travel with it (SCM_RIGHTS). The socket keeps
packets whole (SOCK_SEQPACKET), so any number of threads may send and receive without a lock.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.cluster.rpc.channel import too_large
from weft.cluster.rpc.mapping import Mappings
from weft.cluster.rpc.message import (
    ALIGNMENT,
    Array,
    Buffer,
    Described,
    Kind,
    Message,
    array,
    decode,
    describe,
    frame,
    parse_head,
    parse_kinds,
)
from weft.cluster.rpc.segment import Loans, Segment, lease_of, pool
from weft.errors import DataError, TooLargeError

PACKET_BYTES: Final = 1 << 17
"""The largest packet; the system's limit is about 200 KB."""
INLINE_BYTES: Final = 96 << 10
"""The most bytes of a head and of arrays inside a packet."""
SHARED_BYTES: Final = 64 << 10
"""Arrays of this size or more are in shared memory."""
MOST_REFERENCES: Final = 512
MOST_FILES: Final = 200
"""The system passes at most 253 files at once."""

# Kind, form, references, bytes of the head, call, bytes of the kinds of arrays
HEADER: Final = struct.Struct("<BBHIQI")
REFERENCE: Final = struct.Struct("<IHHQQQQ")  # see `Reference`
CALL, ANSWER, CANCEL = 1, 2, 3
APART, FRAMED = 0, 1
"""Forms: head and small arrays in the packet; all of the message as one array in shared memory."""

_FILES_ROOM: Final = socket.CMSG_SPACE(4 * 253)


class Reference(NamedTuple):
    """Where the bytes of an array are.

    Attributes:
        array: its index in the message.
        file: the index of the segment's file among those of the packet.
        loan: the index of the loan in the segment.
        segment, size: the number of the segment, and its bytes.
        offset, length: of the array in the segment's data.
    """

    array: int
    file: int
    loan: int
    segment: int
    size: int
    offset: int
    length: int


class Packet(NamedTuple):
    """What is sent: parts of a packet, and the files that go with it."""

    parts: list[Buffer]
    files: list[int]
    kept: list[Any]  # what must live until it is sent


def pack(kind: int, call: int, message: Message, loans: Loans, most: int, who: str) -> Packet:
    """A packet with a message; what it lends is noted in `loans`.

    Raises:
        TooLargeError: a message above `most` bytes.
        DTypeError, DataError: see `encode`.
    """
    described = describe(message)
    if described.size > most:
        raise too_large(message.kind, who, described.size, most)
    return _Packing(kind, call, loans).pack(message.arrays, described)


class _Packing:
    """A packet that is being made."""

    def __init__(self, kind: int, call: int, loans: Loans) -> None:
        self._kind, self._call, self._loans = kind, call, loans
        self._references: list[Reference] = []
        self._files: list[int] = []
        self._kept: list[Any] = []

    def pack(self, arrays: Sequence[Array], described: Described) -> Packet:
        if described.size < SHARED_BYTES:
            return self._packet(APART, described)
        bodies, heads = described.bodies, len(described.head) + len(described.kinds)
        small = sum([len(body) for body in bodies if len(body) < SHARED_BYTES])
        least = SHARED_BYTES if heads + small <= INLINE_BYTES else 1
        large = [i for i, body in enumerate(bodies) if len(body) >= least]
        if heads > INLINE_BYTES or len(large) > MOST_REFERENCES:
            return self._framed(described)
        self._share(arrays, bodies, large)
        return self._packet(APART, described)

    def _packet(self, form: int, described: Described) -> Packet:
        head, kinds, bodies = described
        references = [REFERENCE.pack(*reference) for reference in self._references]
        sizes = (len(references), len(head), self._call, len(kinds))
        inside = [body for body in bodies if len(body)]
        parts = [HEADER.pack(self._kind, form, *sizes), *references, head, kinds, *inside]
        return Packet(parts, self._files, self._kept)

    def _framed(self, described: Described) -> Packet:
        self._copy([(0, b"".join(frame(described)))])
        return self._packet(FRAMED, Described(b"", b"", []))

    def _share(self, arrays: Sequence[Array], bodies: list[Buffer], large: Sequence[int]) -> None:
        copied: list[tuple[int, Buffer]] = []
        for i in large:
            if not self._refer(arrays[i], i, bodies[i]):
                copied.append((i, bodies[i]))
            bodies[i] = b""
        if copied:
            self._copy(copied)

    def _refer(self, x: Array, i: int, body: Buffer) -> bool:
        """Refer to an array that is in shared memory; returns whether it is."""
        lease = lease_of(x)
        if lease is None or len(self._files) >= MOST_FILES:
            return False
        segment = lease.segment
        offset = np.frombuffer(body, np.uint8).ctypes.data - segment.address
        if not 0 <= offset <= segment.room - len(body):
            return False  # it was not contiguous, and this is a copy
        loan = self._lend(segment)
        if loan is None:
            return False
        self._kept.append(lease)
        self._references.append(
            Reference(i, *loan, segment.number, segment.size, offset, len(body))
        )
        return True

    def _lend(self, segment: Segment) -> tuple[int, int] | None:
        index = self._loans.add(segment)
        if index < 0:
            return None
        self._files.append(segment.file)
        return len(self._files) - 1, index

    def _copy(self, bodies: Sequence[tuple[int, Buffer]]) -> None:
        """Copy arrays into one segment."""
        size = sum([len(body) + -len(body) % ALIGNMENT for _, body in bodies])
        memory = pool().allocate((size,), np.uint8)
        lease = lease_of(memory)
        loan = None if lease is None else self._lend(lease.segment)
        if lease is None or loan is None:
            raise DataError("message: no shared memory for it")  # a new segment has no other loan
        segment, offset = lease.segment, 0
        for i, body in bodies:
            memory[offset : offset + len(body)] = np.frombuffer(body, np.uint8)
            self._references.append(
                Reference(i, *loan, segment.number, segment.size, offset, len(body))
            )
            offset += len(body) + -len(body) % ALIGNMENT
        self._kept.append(lease)


def send(to: socket.socket, packet: Packet) -> None:
    """Send a packet.

    Raises:
        OSError: the connection has ended, or its buffers were full for too long.
    """
    if packet.files:
        files = np.array(packet.files, np.int32).tobytes()
        to.sendmsg(packet.parts, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    else:
        to.sendmsg(packet.parts)


def cancel(call: int) -> bytes:
    """A packet that cancels a call."""
    return HEADER.pack(CANCEL, APART, 0, 0, call, 0)


# -- receiving


class Received(NamedTuple):
    """A packet that has arrived; `close` it."""

    kind: int
    form: int
    references: int
    head: int
    call: int
    kinds: int
    data: memoryview
    files: list[int]

    def close(self) -> None:
        """Close its files."""
        for file in self.files:
            os.close(file)


def receive(source: socket.socket, buffer: bytearray) -> Received | None:
    """The next packet, in a buffer of `PACKET_BYTES`; `None` at the end.

    Raises:
        DataError: a packet that is malformed.
        OSError: the connection has failed.
    """
    size, extra, flags, _ = source.recvmsg_into([buffer], _FILES_ROOM, socket.MSG_CMSG_CLOEXEC)
    files: list[int] = []
    for _, _, data in extra:
        files += np.frombuffer(data[: len(data) // 4 * 4], np.int32).tolist()
    if not size:
        return None
    view = memoryview(buffer)[:size]
    if size < HEADER.size or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        Received(0, 0, 0, 0, 0, 0, view, files).close()
        raise DataError("packet: too short, too long, or with too many files")
    kind, form, references, head, call, kinds = HEADER.unpack_from(buffer)
    return Received(kind, form, references, head, call, kinds, view, files)


def unpack(packet: Received, mappings: Mappings, most: int) -> Message:
    """The message of a packet; small arrays are copied, the others are where they are.

    Raises:
        DataError: it is malformed.
        TooLargeError: it is above `most` bytes.
    """
    begin = HEADER.size + packet.references * REFERENCE.size
    middle = begin + packet.head
    end = middle + packet.kinds
    data = packet.data
    if end > len(data):
        raise DataError(f"packet: of {len(data)} bytes, but its head ends at {end}")
    shared = _borrowed(packet, mappings, most) if packet.references else {}
    if packet.form == FRAMED:
        if list(shared) != [0]:
            raise DataError("packet: expected one array with the message")
        return decode(shared[0])
    kinds = parse_kinds(bytes(data[middle:end]))
    if shared and max(shared) >= len(kinds):
        raise DataError("packet: a reference to an array that is not there")
    return Message(*parse_head(bytes(data[begin:middle])), _arrays(kinds, shared, data[end:]))


def _arrays(kinds: Sequence[Kind], shared: dict[int, Array], inside: memoryview) -> list[Array]:
    arrays: list[Array] = []
    position = 0
    for i, kind in enumerate(kinds):
        memory = shared.get(i)
        if memory is None:
            body: Any = bytes(inside[position : position + kind.size])
            position += kind.size
        else:
            body = memory
        arrays.append(array(kind, body))
    if position != len(inside):
        raise DataError(f"packet: expected arrays of {position} bytes, got {len(inside)}")
    return arrays


def _borrowed(packet: Received, mappings: Mappings, most: int) -> dict[int, Array]:
    """The bytes of the arrays that are in shared memory, by their index."""
    shared: dict[int, Array] = {}
    segments: dict[tuple[int, int], Array] = {}
    total = 0
    for k in range(packet.references):
        reference = Reference(*REFERENCE.unpack_from(packet.data, HEADER.size + k * REFERENCE.size))
        total += reference.length
        if total > most:
            raise TooLargeError(
                f"message: of {total:,} bytes or more, but max_message_bytes is {most:,}"
            )
        key = reference.segment, reference.loan
        memory = segments.get(key)
        if memory is None:
            if reference.file >= len(packet.files):
                raise DataError("packet: a reference to a file that is not there")
            file = packet.files[reference.file]
            memory = mappings.borrow(reference.segment, reference.size, reference.loan, file)
            segments[key] = memory
        if reference.offset + reference.length > len(memory):
            raise DataError("packet: an array that goes beyond its memory")
        shared[reference.array] = memory[reference.offset : reference.offset + reference.length]
    return shared
