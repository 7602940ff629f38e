"""The switch interval and what Linux makes of short ones: facts that several experiments go by."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "5ms"          # sys.getswitchinterval() of every CPython since 3.2
SECONDS = 0.005          # the same
FINE = "1ns"             # the timer slack that leaves an interval as short as it was asked for
USUAL_SLACK = "50 µs"    # of Linux, prctl(2): PR_SET_TIMERSLACK


def no_slack() -> str | None:
    """Return why the timer slack cannot be chosen on this system, None where it can."""
    return None if sys.platform == "linux" else "only Linux lets a process choose how late its timers may be"


def row_name(parameters: Mapping[str, str]) -> str:
    """Return the parameters of a cell as the name of a row: "1 µs, fine timer"."""
    unit = parameters["interval"].lstrip("0123456789")
    name = f"{parameters['interval'].removesuffix(unit)} {unit.replace('us', 'µs')}"
    return f"{name}, fine timer" if "slack" in parameters else name
