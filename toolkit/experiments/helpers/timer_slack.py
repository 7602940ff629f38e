"""How late the timers of the measured process may be: a switch interval is one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.measure.program.interface import Trial

# Of the main thread, which the others are started from and inherit it from; nanoseconds (proc_pid_timerslack_ns(5)).
TIMER_SLACK = "/proc/self/timerslack_ns"


def set_timer_slack(trial: Trial) -> None:
    """Let timed waits of this process end up to "slack" late only, where Linux takes 50 us to bundle wake-ups.

    Raises:
        StoppedError: the system does not let us.
    """
    wanted = str(round(trial.number("slack") * 1e9))
    try:
        with open(TIMER_SLACK, "w") as file:
            file.write(wanted)
        with open(TIMER_SLACK) as file:
            found = file.read().strip()
    except OSError as error:
        trial.stop(f"the timer slack cannot be set: {error.strerror}")
    if found != wanted:
        trial.stop(f"the timer slack cannot be set to {wanted} ns, it stays {found} ns")
