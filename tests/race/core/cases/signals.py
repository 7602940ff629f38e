"""Cases of signals that arrive while the core runs a callback of ours: what the program's handler raises reaches it."""

from __future__ import annotations

import contextlib
import signal
import threading

from tests.race.core.cases.world import Thing

NUMBER = signal.SIGUSR1 if hasattr(signal, "SIGUSR1") else signal.SIGTERM


class ProgramError(Exception):
    """What the program's handler raises."""


class Handled:
    """A handler of the program that raises, for as long as the `with` lasts."""

    def __init__(self, w):
        self.calls = []
        self.handler = w.core.wrap(self.handle, muted=False, handles_signal=True)

    def handle(self, number, frame):
        self.calls.append((number, frame is not None))
        raise ProgramError

    def __enter__(self):
        self.before = signal.signal(NUMBER, self.handler)
        return self

    def __exit__(self, *_):
        signal.signal(NUMBER, self.before)


def raises(kind, act):
    """Return True if the act, or what runs right after it, raises that."""
    try:
        with contextlib.suppress(ValueError):       # the call's own error
            act()
        for _ in range(100):        # CPython runs a handler between two instructions
            pass
    except kind:
        return True
    return False


def case_error_of_a_handler_inside_a_callback_reaches_the_program(w):
    for place in ("before", "after", "failed"):
        steps = []

        def original(place=place, steps=steps):
            steps.append("original")
            if place == "failed":
                raise ValueError

        def callback(*_, steps=steps):
            signal.raise_signal(NUMBER)
            steps.append("whole")

        with Handled(w) as handled:
            assert raises(ProgramError, w.core.wrap(original, **{place: callback})), place
            assert handled.calls == [(NUMBER, True)], place
        expected = ["whole"] if place == "before" else ["original", "whole"]
        assert steps == expected, (place, steps)
        level = w.core.mute()
        w.core.restore(level)
        assert level == 0, place


def case_error_of_a_handler_inside_the_report_reaches_the_program(w):
    thing, put, get = Thing(), w.site("put", "n", op="attr_write"), w.site("get", "n")

    class Interrupted(list):
        def append(self, conflict):
            signal.raise_signal(NUMBER)
            super().append(conflict)

    clock = w.core.snapshot()

    def store():
        w.core.thread_begin(None, clock)
        w.attr_write(thing, put).n = 5
        w.core.thread_end()

    thread = threading.Thread(target=store)
    thread.start()
    thread.join()                   # which orders nothing here
    w.conflicts = Interrupted()
    with Handled(w) as handled:
        assert raises(ProgramError, lambda: w.attr_read(thing, get).n)
        assert handled.calls == [(NUMBER, True)]
    assert w.pairs() == {("order", "put WRITE", "get READ")}


def case_interrupt_inside_a_callback_reaches_the_program(w):
    def callback(*_):
        signal.raise_signal(signal.SIGINT)
        for _ in range(100):
            pass

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for place in ("before", "after"):
            assert raises(KeyboardInterrupt, w.core.wrap(lambda: None, **{place: callback})), place
            level = w.core.mute()
            w.core.restore(level)
            assert level == 0, place
    finally:
        signal.signal(signal.SIGINT, before)
