"""The terms that describe accesses and races, which rewriter, cores, conflict handling and reports share.

A checked program imports them with the recorder or the rewriter: most starts do without.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum


class AccessKind(IntEnum):
    """Kind of an access, by its effect on the location."""

    READ = 0       # one load
    WRITE = 1      # one store
    ATOMIC = 2     # setdefault, pop, update, add: reads and writes a key in one step
    SIZE = 3       # len(), truth, a snapshot
    ITERATE = 4    # fails or skips items if the structure changes during it
    GROW = 5       # append, insert, a new key
    SHRINK = 6     # pop, remove, clear
    RESHAPE = 7    # slice assignment, sort, reverse: several steps
    MISS = 8       # a lookup of a key that is not there


WRITES = frozenset({AccessKind.WRITE, AccessKind.ATOMIC, AccessKind.GROW, AccessKind.SHRINK, AccessKind.RESHAPE})


class Flag(IntFlag):
    """Facts that the rewriter found in the source around an access."""

    NONE = 0
    CONSTANT = 1      # the stored value is a literal
    TEST = 2          # the read decides an if, while, assert or conditional expression
    POLL = 4          # the read stands in the test of a while loop
    SPAN_READ = 8     # a later write names this read as its partner
    GUARD = 16        # the write depends on its partners through a test
    VALUE = 32        # the write's value comes from its partners
    MULTI = 64        # one of several stores that belong together: tuple target, swap, neighbouring stores
    RECHECKED = 128   # guarded by a test that reads the same location inside the same `with`
    AUGMENTED = 256   # x += v: one op, its own partner
    DELETE = 512
    INIT = 1024       # in __init__, __new__ or __post_init__, on the first argument
    MEMO = 2048       # the stored value is made from nothing but the names of the key, functions and constants
    SNAPSHOT = 4096   # a local keeps what was read, and is tested
    NEW = 8192        # a store of what was just made, which depends on no earlier read; or a load that may see one
    COUNTED = 16384   # an x += v, and a loop of the module polls x
    RELIES = 32768    # a read that others rely on, or that relies on another one: see SiteInfo.tests
    EXPECTED = 65536  # a load of a constant key with nothing there to handle its absence: something else must order it


class ValueFact(IntFlag):
    """Facts about a value that a variable has or gets: the value itself cannot leave the program."""

    UNKNOWN = 0
    KNOWN = 1
    PLAIN = 2         # immutable, with all its parts, and of exact builtin types
    FALSE = 4         # plain, and false
    NONE = 8
    COLLECTION = 16   # a tuple or a frozenset
    BARE = 32         # an `object()`


class RaceKind(StrEnum):
    """Kind of a race, as reports and suppressions name it; the most severe first.

    The values are the field's terms, and stable: users type them in suppressions (`kind = "lost update"`), and scripts
    compare them.  So there is no code beside them; SARIF, which wants identifiers, has its own.
    """

    LOST_UPDATE = "lost update"
    CHECK_THEN_ACT = "check-then-act"
    TORN_WRITE = "torn multi-step write"
    ITERATION = "iteration during change"
    UNSYNCHRONISED = "unsynchronised read/write"


class Remedy(StrEnum):
    """Atomic step that can replace a check and its act: a method of dict, an exception to catch, or one read."""

    SETDEFAULT = "dict.setdefault"
    POP = "dict.pop"
    INDEX_ERROR = "IndexError"
    KEY_ERROR = "KeyError"
    VALUE_ERROR = "ValueError"
    GET = "dict.get"
    THREADSAFE = "loop.call_soon_threadsafe"
    LOCAL = "local variable"
    ORDER = "order of statements"
    EMPTY = "queue.Empty"
    FULL = "queue.Full"


class GapReason(StrEnum):
    """Reason why accesses went unchecked.  The values are those that the core reports, each with a count."""

    DEATHS = "deaths"      # the core lost sight of which objects die; the count is of objects whose accesses it forgot
    THREADS = "threads"    # there were more threads at a time than the count; checking stopped


class Severity(StrEnum):
    """Severity of a conflict; the gravest first.  The values are stable terms, as those of `RaceKind`."""

    RACE = "race"
    VIOLATION = "atomicity violation"
    SUPPRESSED = "suppressed"          # in records only: a report keeps suppressed races in a list of their own
    NOTE = "note"

    @property
    def rank(self) -> int:
        """The position in this order: 0 is the gravest."""
        return tuple(Severity).index(self)


GRAVE = (Severity.RACE, Severity.VIOLATION)    # those that fail a run
