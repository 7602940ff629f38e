"""The countdown under a switch interval, and where it is asked for, with a timer that is as fine as the interval."""

from __future__ import annotations

from gilscope.toolkit.experiments.countdown import program as countdown
from gilscope.toolkit.experiments.helpers.timer_slack import set_timer_slack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.measure.program.interface import Taken, Trial


def measure(trial: Trial) -> Taken:
    """Return the wall seconds of the countdown; with the parameter "slack", under that timer slack of Linux."""
    if "slack" in trial.parameters:
        set_timer_slack(trial)
    return countdown.measure(trial)
