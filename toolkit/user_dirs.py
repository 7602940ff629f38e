"""The folders of the user in which gilscope keeps builds, environments and caches.

platformdirs would replace half of this: the two variables that move the folders are ours, and neither
`toolkit/make_venv.py` nor a program under the race checker may import what must be installed first.  A checked program
waits for its imports, so the texts need no pathlib.  Runs under Python 3.9.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
RESULTS_VARIABLE = "GILSCOPE_RESULTS"
DEFAULT_RESULTS = ".gilscope-results"
EARLIER_RESULTS = "results"   # the default of earlier versions, and the place of gilscope's own results


def cache_folder() -> str:
    """Return the folder for files that can be thrown away: $GILSCOPE_CACHE, or gilscope's XDG cache folder."""
    return _folder("GILSCOPE_CACHE", "XDG_CACHE_HOME", "~/.cache")


def data_folder() -> str:
    """Return the folder for files that take long to make again: $GILSCOPE_DATA, or gilscope's XDG data folder."""
    return _folder("GILSCOPE_DATA", "XDG_DATA_HOME", "~/.local/share")


def cache_dir() -> Path:
    """Return `cache_folder` as a path."""
    from pathlib import Path

    return Path(cache_folder())


def data_dir() -> Path:
    """Return `data_folder` as a path."""
    from pathlib import Path

    return Path(data_folder())


def _folder(own: str, xdg: str, default: str) -> str:
    if chosen := os.environ.get(own):
        return os.path.abspath(os.path.expanduser(chosen))
    base = os.environ.get(xdg, "")
    # The XDG specification says to ignore relative paths; an empty value counts as unset.
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser(default), "gilscope")
