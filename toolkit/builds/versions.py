"""The versions of CPython that gilscope measures; CONTRIBUTING.md lists what else a new one needs."""

from __future__ import annotations

OLDEST, NEWEST = 12, 15     # minor versions
FIRST_FREE_THREADED = 13    # 3.13: PEP 703
NEWEST_FIRST = tuple(f"3.{minor}" for minor in range(NEWEST, FIRST_FREE_THREADED - 1, -1))   # that have both builds
LABELS = tuple(f"3.{minor}{suffix}" for minor in range(OLDEST, NEWEST + 1) for suffix in ("", "t")
               if not suffix or minor >= FIRST_FREE_THREADED)
SUPPORTED = f"gilscope measures CPython 3.{OLDEST} to 3.{NEWEST}, and 3.{FIRST_FREE_THREADED}t to 3.{NEWEST}t"
