"""The countdown under a switch interval, and where it is asked for, with a timer that is as fine as the interval."""

from __future__ import annotations

from gilscope.toolkit.experiments.countdown import program as countdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.measure.program.trial import Taken, Trial

# Of the main thread, which the others are started from and inherit it from; nanoseconds (proc_pid_timerslack_ns(5)).
TIMER_SLACK = "/proc/self/timerslack_ns"


def measure(trial: Trial) -> Taken:
    """Return the wall seconds of the countdown; with the parameter "slack", under that timer slack of Linux."""
    if "slack" in trial.parameters:
        set_timer_slack(trial)
    return countdown.measure(trial)


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
