"""Thread pools of C libraries that this process has loaded: BLAS and OpenMP start as many threads as there are cores.

What threadpoolctl would tell, without a package more in the user's environment.
"""

from __future__ import annotations

import contextlib
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The file's name, what it is called, and what tells how many threads it uses: built for NumPy or SciPy the names are
# others.
LIBRARIES = (
    (re.compile(r"lib(scipy_)?openblas"), "OpenBLAS", (
        "openblas_get_num_threads", "openblas_get_num_threads64_", "scipy_openblas_get_num_threads",
        "scipy_openblas_get_num_threads64_")),
    (re.compile(r"libmkl_rt"), "MKL", ("MKL_Get_Max_Threads",)),
    (re.compile(r"libblis"), "BLIS", ("bli_thread_get_num_threads",)),
    (re.compile(r"lib(g|i)?omp\d*[-.]"), "OpenMP", ("omp_get_max_threads",)),
)


def pools() -> dict[str, int]:
    """Return how many threads each kind of pool uses at most, of the libraries that are loaded now."""
    found: dict[str, int] = {}
    for path, name, functions in _loaded():
        if (threads := _asked(path, functions)) is not None:
            found[name] = max(threads, found.get(name, 0))
    return found


def _loaded() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = {line.split(maxsplit=5)[5].strip() for line in file if line.count("/") and len(line.split()) > 5}  # noqa: PLR2004
        for path in sorted(paths):
            for pattern, name, functions in LIBRARIES:
                if pattern.match(os.path.basename(path)):
                    yield path, name, functions


def _asked(path: str, functions: tuple[str, ...]) -> int | None:
    import ctypes  # not before such a library was found: the measured process imports no more than it has to

    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    for name in functions:
        if function := getattr(library, name, None):
            return int(function())
    return None
