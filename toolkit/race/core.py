"""Interface of the race checker's core, for all modules that call it or stand in for it.

A core keeps vector clocks, shadow state and locks, and reports conflicts to a callback.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from gilscope.toolkit.race.site import SiteInfo

    RawAccess = tuple[int, int, int, int, tuple[int, ...], int]         # thread, site, kind, context, locks, span
    Conflict = tuple[str, Any, str, Any, RawAccess, RawAccess, Any]     # sort, owner, part, key, first, second, value
    Place = tuple[str, int, str]     # path, line, qualified name of the function

    class Core(Protocol):
        """Vector clocks, shadow state and locks of one process.

        `release`, `acquire`, `snapshot` and `join` add happens-before edges.  A *muted* thread's locks add none.
        """

        name: str

        @property
        def ops(self) -> Mapping[str, Callable[..., Any]]:
            """The functions that rewritten code calls, by the names in `site.OPS`."""

        def site(self, info: SiteInfo, number: int) -> object:
            """Return the object that ops get for a site; the partners in `info` are site numbers."""

        def start(self, on_conflict: Callable[[Conflict], bool]) -> None:
            """Start tracking; `on_conflict` is called in the thread that completes a conflict.

            It returns True if the core may stop reporting that pair of sites.
            """


        def report_gaps(self, on_gap: Callable[[str, int], None]) -> None:
            """Call `on_gap` whenever accesses go unchecked that should have been checked.

            Its arguments are a value of `GapReason` and a count, which `GapReason` explains.
            """

        def hook_changed(self, *arguments: object) -> None:
            """Install the hook through which the core learns that objects die again, if a function has replaced it.

            Call it right after the function, as a callback of `wrap`.  Without a GIL, objects may have died meanwhile:
            what was known of them all is forgotten, which is a gap.
            """

        def stop(self) -> None:
            """Stop tracking."""

        def release(self, owner: object) -> None:
            """Let later calls of `acquire` with the same object be ordered after this point."""

        def acquire(self, owner: object) -> None:
            """Add the edges from all earlier calls of `release` with the same object."""

        def snapshot(self) -> object:
            """Return this thread's present vector clock; its later accesses are not part of it."""

        def join(self, clock: object) -> None:
            """Add the edge from a clock that `snapshot` or `thread_end` returned."""

        def mute(self) -> int:
            """Ignore this thread's locks until `restore` gets the level returned here."""

        def restore(self, level: int) -> None:
            """Return to the muting level before `mute`."""

        def wrap(self, original: Callable[..., Any], before: Callable[..., Any] | None = None,
                 after: Callable[..., Any] | None = None, failed: Callable[..., Any] | None = None, *,
                 muted: bool = True, handles_signal: bool = False) -> Callable[..., Any]:
            """Return a callable like `original` that calls callbacks around it.

            `state = before(*args)`, then the original with locks muted, then `after(state, result, *args)`, or
            `failed(state, error, *args)` if it raised.  Inside of another muted one only the original is called.  If
            `before` returns NotImplemented, locks are not muted.  Errors of the callbacks do not reach the program.

            `handles_signal` says that the original is a signal handler: if the signal comes while a callback runs, the
            handler is called after it, so that what it raises reaches the program.
            """

        def patch(self, owner: Any, name: str, replacement: object) -> Callable[[], None] | None:
            """Set an attribute; return the function that undoes it, or None if it cannot be set."""

        def track_locks(self) -> Callable[[], None]:
            """Track locks that are created from now on; return the function that ends it."""

        def thread_begin(self, thread: object, clock: object | None) -> int:
            """Start a thread that is ordered after `clock`, or after everything so far; return its uid.

            If this thread has begun already (a pool's worker), the new one is a logical thread on top of it.
            """

        def thread_end(self) -> object:
            """End this thread, or the topmost logical one; return its final clock."""

        def thread_uid(self) -> int:
            """Return this thread's uid; the main thread's is 0."""

        def after_fork(self) -> None:
            """Continue in a child process, where all other threads have ended."""

        def locks_held(self) -> tuple[int, ...]:
            """Return the uids of the locks that this thread holds, innermost first."""

        def lock_origin(self, uid: int) -> tuple[tuple[Place, ...], object | None]:
            """Return the stack of a lock's first acquisition, and the lock if it still exists."""

        def stack(self, context: int) -> tuple[Place, ...]:
            """Return the callers of an access, innermost first."""

        def object_number(self, owner: object) -> int:
            """Return the object's number, which no other object of the process has had, unlike its id."""

        def counts(self) -> dict[tuple[int, int], int]:
            """Return the number of conflicts of each pair of sites, the smaller number first."""

        def busy(self) -> AbstractContextManager[None]:
            """Return a context in which this thread's accesses are ignored."""


class NoValue:
    """The type of NO_VALUE."""

    def __repr__(self) -> str:
        return "NO_VALUE"


UNKNOWN_LOCKS = 0      # stands for the uids of the locks that an access held, where there are too many sets of locks
NO_VALUE = NoValue()   # stands for a value that is not known
