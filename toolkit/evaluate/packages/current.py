"""What is installed in the environment that is active now, as requirements.  Reads metadata files only."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.evaluate.packages.distributions import TOOLS, own_name, site_folders

OURS = "gilscope"


def current_requirements() -> tuple[str, ...]:
    """Return "name==version" for all that is installed in the active virtual environment, or beside our own Python.

    What came from a folder or a repository is left out: it has no wheel on an index.

    Raises:
        ToolkitError: Nothing is installed there.
    """
    place = Path(os.environ.get("VIRTUAL_ENV") or sys.prefix)
    found = {own_name(each): each
             for each in distributions(path=[str(folder) for folder in site_folders(place)])}
    wanted = tuple(f"{name}=={each.version}" for name, each in sorted(found.items())
                   if name and name not in TOOLS | {OURS} and not _is_local(each))
    if not wanted:
        raise ToolkitError(f"no packages are installed in {place}; name some, or activate an environment")
    return wanted


def _is_local(found: Distribution) -> bool:
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
    except ValueError:
        return False
    return "dir_info" in origin or "vcs_info" in origin
