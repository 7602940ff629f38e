"""Verify, by what the running build does, that object headers mean what they are taken for; refuse the build otherwise.

Run it in a fork: it starts a thread, and makes objects immortal.
"""

from __future__ import annotations

import sys
import threading
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

IMMORTAL = 2**32 - 1     # local count of an immortal object
FIELDS = {"ob_tid": 0, "ob_mutex": 10, "ob_ref_local": 12, "ob_ref_shared": 16, "size": 32}     # of 64-bit builds
LEAST_COUNT = 2**28      # what `sys.getrefcount` says of an immortal object is at least this
TAKEN = 3                # references that are taken to see a count move


class LayoutRefusedError(Exception):
    """Headers of this build do not behave as expected; the message says in what."""


class _Plain:
    """An object with a count of its own."""


def verify(headers: ModuleType) -> None:
    """Check fields and counts, and that an immortal object stays one.

    Raises:
        LayoutRefusedError: Something is not as in the builds that are known.
    """
    if not hasattr(headers, "header_layout"):
        raise LayoutRefusedError("headers are read on Linux and free-threaded builds alone")
    if (layout := headers.header_layout()) != FIELDS:
        raise LayoutRefusedError(f"an object's header has other fields in this build: {layout}")
    subject = _Plain()
    owner, _, local, shared = headers.header(subject)
    taken = [subject] * TAKEN
    again = headers.header(subject)
    _expect(again[0] == owner != 0 and again[2] - local == TAKEN and again[3] == shared,
            "a reference of the owning thread does not raise the local count")
    for known in (None, 3, ""):
        _expect(headers.header(known)[2] == IMMORTAL, f"{known!r} is not immortal")
    elsewhere: list[object] = []
    thread = threading.Thread(target=elsewhere.extend, args=([subject, subject],))
    before = headers.header(subject)[3] >> 2
    thread.start()
    thread.join()
    moved = (headers.header(subject)[3] >> 2) - before
    _expect(moved != 0, "a reference of another thread does not move the shared count")
    seen = weakref.ref(subject)
    _expect(seen() is subject and headers.header(subject)[3] & 3 in {1, 3}, "a weak reference sets no flag")
    del taken
    _verify_immortality(headers)


def _verify_immortality(headers: ModuleType) -> None:
    subject = _Plain()
    first, again = headers.immortalize([subject]), headers.immortalize([subject])
    _expect((first, again) == (1, 0), "an object is not made immortal")
    holders = [[subject] * TAKEN for _ in range(TAKEN)]
    holders.clear()
    thread = threading.Thread(target=lambda: [subject] * TAKEN)
    thread.start()
    thread.join()
    owner, _, local, shared = headers.header(subject)
    _expect((owner, local, shared) == (0, IMMORTAL, 0), "the count of an immortal object changes")
    _expect(sys.getrefcount(subject) >= LEAST_COUNT, "sys.getrefcount does not know an immortal object")
    told = getattr(sys, "_is_immortal", None)      # from 3.14 on
    _expect(told is None or told(subject), "sys._is_immortal does not know an immortal object")


def lock_offsets(headers: ModuleType) -> dict[type, int]:
    """Return, for Lock and RLock, the offset of a byte that is not 0 exactly while one is held."""
    found = {}
    for make in (threading.Lock, threading.RLock):
        lock = make()
        free = headers.body(lock)
        with lock:
            held = headers.body(lock)
        after = headers.body(lock)
        bytes_of = enumerate(zip(free, held, after, strict=True))
        place = next((place for place, (one, two, three) in bytes_of if two and not one and not three), None)
        if place is not None:
            found[type(lock)] = FIELDS["size"] + place
    return found


def _expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise LayoutRefusedError(f"this build counts references in another way: {otherwise}")
