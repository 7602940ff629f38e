"""Switch intervals, and the timer slack by which Linux delays the short ones.

Experiments and their programs share these; a measured process imports them, so they import little.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.measure.child.program import ProgramTrial

DEFAULT_INTERVAL = "5ms"   # sys.getswitchinterval() of every CPython since 3.2
DEFAULT_SECONDS = 0.005    # DEFAULT_INTERVAL in seconds
FINE_SLACK = "1ns"         # a timer slack that delays no switch interval noticeably
USUAL_SLACK = "50 µs"      # Linux's default, prctl(2): PR_SET_TIMERSLACK
# Of the main thread, from which threads started later inherit it; nanoseconds (proc_pid_timerslack_ns(5)).
SLACK_FILE = "/proc/self/timerslack_ns"


def slack_reason() -> str | None:
    """Return why the timer slack cannot be set on this system, or None where it can."""
    return None if sys.platform == "linux" else "only Linux lets a process choose how late its timers may be"


def interval_label(parameters: Mapping[str, str]) -> str:
    """Return the switch interval and timer slack of a cell's parameters as a row's name: "1 µs, fine timer"."""
    unit = parameters["interval"].lstrip("0123456789")
    name = f"{parameters['interval'].removesuffix(unit)} {unit.replace('us', 'µs')}"
    return f"{name}, fine timer" if "slack" in parameters else name


def set_timer_slack(trial: ProgramTrial) -> None:
    """Set the timer slack of this process to the trial's parameter "slack".

    Raises:
        NoValueError: the system does not allow it.
    """
    requested = str(round(trial.number("slack") * 1e9))
    try:
        with open(SLACK_FILE, "w") as file:
            file.write(requested)
        with open(SLACK_FILE) as file:
            found = file.read().strip()
    except OSError as error:
        trial.stop(f"the timer slack cannot be set: {error.strerror}")
    if found != requested:
        trial.stop(f"the timer slack cannot be set to {requested} ns, it stays {found} ns")
