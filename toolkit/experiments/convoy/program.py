"""An echo server beside CPU work, with a client in a process of its own.

First a closed loop measures requests a second.  Then an open loop, at half of the server's typical rate, measures how
long a request takes, counted from the time it was due.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.experiments.helpers.burners import burning
from gilscope.toolkit.experiments.helpers.echo import serving
from gilscope.toolkit.experiments.helpers.timers import set_timer_slack
from gilscope.toolkit.measure.child.program import ProgramValue

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.helpers.burners import Burners
    from gilscope.toolkit.measure.child.program import ProgramTrial
    from gilscope.toolkit.processes.helper_process import HelperProcess

CLIENT = "gilscope.toolkit.experiments.load.echo_client"
BURNERS = {"free-threaded": "threads"}   # kind of burner by model, where the names differ
LOAD_SHARE = 0.5        # of the closed loop's rate; at the whole rate, requests would only queue
ANSWER_SECONDS = 35.0   # grace beyond a loop's bound: the client's patience, and waits of this process for the GIL
MODERATE = 5e-3         # the default switch interval, in force outside of the loops


def measure(trial: ProgramTrial) -> ProgramValue:
    """Return the seconds per request of the closed loop, with the latencies of the open loop in the metrics.

    `trial.workers` is the number of burners beside the server, `trial.model` the place where they burn.  The parameter
    "interval" sets the switch interval of the loops, "slack" the timer slack of Linux.

    Raises:
        NoValueError: the system does not allow that slack.
    """
    if "slack" in trial.parameters:
        set_timer_slack(trial)
    kind = BURNERS.get(trial.model, trial.model)
    with serving() as port, trial.helper(CLIENT) as client, burning(kind, trial.workers) as burners:
        client.ask(limit=ANSWER_SECONDS + 30, do="connect", port=port, connections=2)
        trial.progress()
        closed, paced, burnt = _loops(trial, client, burners)
    metrics = {
        **{f"closed_{name}": value for name, value in closed.items()},
        **paced,
        "burnt": burnt,
    }
    # Results cannot store empty texts.
    return ProgramValue(seconds=1 / closed["rate"], wanted_cores=_wanted_cores(trial),
                        metrics={name: value for name, value in metrics.items() if value != ""})


def _wanted_cores(trial: ProgramTrial) -> float:
    """Return the cores that the cell needs: with fewer, its fast mode or a queue for the cores would be measured.

    Alone, client and server take turns, and neither gets far ahead.  One CPU thread with the GIL needs a core to wake
    on, or it is too late to take the GIL back.
    """
    if not trial.workers:
        return 1.5
    return 2.0 if trial.model == "threads" else 2.0 + trial.workers


def _loops(
    trial: ProgramTrial, client: HelperProcess, burners: Burners,
) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Return the reports of both loops, and the iterations a second of the CPU work beside them."""
    least, bound = trial.count("least"), trial.number("bound")
    # `measuring` begins and ends while nothing burns: it reads files, and beside CPU threads each read waits for the
    # GIL.
    with trial.measuring():
        burners.go()
        if "interval" in trial.parameters:
            sys.setswitchinterval(trial.number("interval"))
        closed = client.ask(limit=bound + ANSWER_SECONDS, do="closed", seconds=trial.number("closed"), least=least,
                            bound=bound)
        if closed["requests"]:
            rate = min(trial.number("rate"), LOAD_SHARE / closed["typical"])
            paced = client.ask(limit=bound + ANSWER_SECONDS, do="open", rate=rate, seconds=trial.number("open"),
                               least=least, bound=bound)
        sys.setswitchinterval(MODERATE)
        burnt = burners.stop()
    if not closed["requests"]:
        trial.stop(f"no request was answered within {closed['seconds']:.3g} s", "hang")
    return closed, paced, burnt
