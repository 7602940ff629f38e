"""Where the race checker keeps what can be thrown away, without the imports of `gilscope.toolkit.builds.user_dirs`."""

from __future__ import annotations

import os


def cache_folder() -> str:
    """Return $GILSCOPE_CACHE, or gilscope's XDG cache folder."""
    if chosen := os.environ.get("GILSCOPE_CACHE"):
        return os.path.abspath(os.path.expanduser(chosen))
    base = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "gilscope")
