"""Signals that are made, connected, sent and disconnected by four threads."""

from contextlib import suppress

from blinker import Namespace
from in_threads import in_threads

signals = Namespace()
SENDERS = [object() for _ in range(3)]


def work(thread, turn):
    signal = signals.signal(f"signal {turn % 5}")

    def receiver(sender):
        pass

    with suppress(RuntimeError, KeyError):   # a set that changes while it is iterated is one of the races
        signal.connect(receiver, SENDERS[turn % 3])
        signal.send(SENDERS[turn % 3])
        signal.disconnect(receiver)


in_threads(work)
