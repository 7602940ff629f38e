"""The workers of `channels`, in a thread, an interpreter or a process: the ends of channels, and the roles.

Apart from the program, since every worker interpreter imports it afresh; so it imports little.

A message is bytes-like: its kind, the place of its sender, its index, then a pattern that a receiver can check.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from io import FileIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Send = Callable[[Any], object]
    Receive = Callable[[], Any]

DATA, TRACE, STOP, ALARM = range(4)   # a message's first byte
HEADER = 3                            # bytes: kind, place, index
VARIANTS = 4                          # a sender repeats this many different messages in turn
LENGTH_BYTES = 8     # a frame on a pipe is its length, little-endian, then its bytes
SMALL_FRAME = 4096   # below, one copy is cheaper than a second system call (PIPE_BUF is 4096 on Linux)
READY, DONE, ERROR = b"ready", b"done ", b"error "   # reports; a count or an exception follows the last two


def message(place: int, index: int, size: int) -> bytes:
    """Return the message of `size` bytes, at least `HEADER`, number `index` of the worker at `place`."""
    pattern = bytes(range(place, 256)) * (size // (256 - place) + 1)
    return bytes((DATA, place, index % VARIANTS)) + pattern[: size - HEADER]


def interpreters_module() -> Any:
    """Return the module with queues between interpreters: before 3.14 the backport, then the standard library's."""
    return importlib.import_module(
        "concurrent.interpreters" if sys.version_info >= (3, 14) else "backports.interpreters")


def sender(channel: str, link: Any) -> Send:
    """Return the function that puts a message into the channel; `link` is this end of it, as `opened` returns it."""
    if channel == "os.pipe":
        return functools.partial(send_frame, link[1])
    send: Send = link[1].send if channel == "multiprocessing.Pipe" else link.put
    return send


def receiver(channel: str, link: Any) -> Receive:
    """Return the function that waits for the next message of the channel."""
    if channel == "os.pipe":
        return functools.partial(_receive_frame, link[0])
    receive: Receive = link[0].recv if channel == "multiprocessing.Pipe" else link.get
    return receive


def opened(channel: str, address: Any) -> Any:
    """Return a worker's link to the channel at `address`."""
    return interpreters_module().Queue(address) if channel == "interpreters.Queue" else address


def work(  # noqa: PLR0913 - a process's words, by name
    *, role: str, channel: str, inbound: Any, outbound: Any, orders: int, reports: int, place: int, size: int,
    form: str,
) -> None:
    """Play a role until a message or an order ends it, report the result, and stay until the orders' pipe is closed.

    Args:
        role: "forward" or "produce".
        channel: The kind of both channels.
        inbound: Address of the channel to receive from; None for a producer.
        outbound: Address of the channel to send to.
        orders: Descriptor of a pipe with numbers of messages to produce, frame by frame; its end ends the worker.
        reports: Descriptor of a pipe for `READY`, then `DONE` or `ERROR`.
        place: From 1; 0 is the main thread.
        size: Size of a message in bytes.
        form: Form of a producer's messages, "bytes" or "memoryview".
    """
    try:
        links = [None if address is None else opened(channel, address) for address in (inbound, outbound)]
        send = sender(channel, links[1])
        send_frame(reports, READY)
        if role == "forward":
            count = forward(receiver(channel, links[0]), send, place)
        else:
            count = produce(orders, send, [_formed(message(place, index, size), form) for index in range(VARIANTS)])
        send_frame(reports, DONE + b"%d" % count)
    except BaseException as error:  # noqa: BLE001 - whatever goes wrong in a build is the cell's result
        send_frame(reports, ERROR + f"{type(error).__name__}: {error}".encode())
    # 3.12's channels are gone for all when one end goes, so all ends stay until all messages have arrived.
    while receive_frame(orders):
        pass


def forward(receive: Receive, send: Send, place: int) -> int:
    """Forward messages until one of kind `STOP`; return their number.  Append this place to a trace."""
    count = 0
    while True:
        received = receive()
        kind = received[0]
        if kind == DATA:
            send(received)
            count += 1
        elif kind == TRACE:
            send(bytes(received) + bytes((place,)))
        else:
            return count


def produce(orders: int, send: Send, messages: list[Any]) -> int:
    """Send the number of messages that each order gives; return their total."""
    count = 0
    while (order := receive_frame(orders)) and (number := int(order)):
        for index in range(number):
            send(messages[index % VARIANTS])
        count += number
    return count


def _formed(content: bytes, form: str) -> bytes | memoryview:
    return memoryview(content) if form == "memoryview" else content


def _receive_frame(descriptor: int) -> bytearray:
    frame = receive_frame(descriptor)
    if frame is None:
        raise EOFError("the other end of the pipe is closed")
    return frame


def send_frame(fd: int, frame: bytes) -> None:
    """Write one frame to a blocking descriptor, whole."""
    header = len(frame).to_bytes(LENGTH_BYTES, "little")
    if len(frame) < SMALL_FRAME:
        _write_all(fd, header + frame)
    else:
        _write_all(fd, header)
        _write_all(fd, frame)


def receive_frame(fd: int) -> bytearray | None:
    """Return the next frame from a blocking descriptor, or None at its end."""
    source = FileIO(fd, "rb", closefd=False)
    header = bytearray(LENGTH_BYTES)
    if not _read_all(source, header):
        return None
    frame = bytearray(int.from_bytes(header, "little"))
    return frame if _read_all(source, frame) else None


def _write_all(fd: int, frame: bytes) -> None:
    written = os.write(fd, frame)
    if written == len(frame):
        return
    rest = memoryview(frame)[written:]  # Linux writes at most 2 GiB at once; a signal may cut it shorter
    while rest:
        rest = rest[os.write(fd, rest):]


def _read_all(source: FileIO, buffer: bytearray) -> bool:
    with memoryview(buffer) as view:
        filled = 0
        while filled < len(buffer):
            count = source.readinto(view[filled:])
            if not count:
                return False
            filled += count
    return True
