"""An echo server beside CPU work, asked by a client in a process of its own.

First a closed loop: how many requests a second.  Then an open loop at half of what the server does at most times: how
long a request takes, counted from the time it was due.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.experiments.helpers.burners.burning import burning
from gilscope.toolkit.experiments.helpers.echo import serving
from gilscope.toolkit.experiments.helpers.timer_slack import set_timer_slack
from gilscope.toolkit.measure.program.interface import Taken

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.helpers.burners.burning import Burners
    from gilscope.toolkit.measure.program.interface import Helper, Trial

CLIENT = "gilscope.toolkit.experiments.load.echo_client"
BURNERS = {"free-threaded": "threads"}   # by model where the names differ
LOAD_SHARE = 0.5        # of one request after the other: at all of it, requests would only queue
ANSWER_SECONDS = 35.0   # beyond a loop's bound: the client's patience, and the turns that this process waits for
MODERATE = 5e-3         # the default switch interval, for what happens around the loops


def measure(trial: Trial) -> Taken:
    """Return the seconds per request of the closed loop, with the latencies of the open loop in the metrics.

    `trial.workers` is the number of burners beside the server, `trial.model` where they burn.  With the parameter
    "interval" the loops run under that switch interval, with "slack" under that timer slack of Linux.

    Raises:
        StoppedError: the system does not let us have that slack.
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
    # What is empty is not said.
    return Taken(seconds=1 / closed["rate"], wanted_cores=_wanted_cores(trial),
                 metrics={name: value for name, value in metrics.items() if value != ""})


def _wanted_cores(trial: Trial) -> float:
    """Return how many cores it takes: where one is missing, the fast of two modes shows, or a queue for the cores.

    Alone, the client and the server take turns, and neither gets far ahead.  One CPU thread with the GIL needs a core
    to wake on, or it comes too late to take the GIL back.
    """
    if not trial.workers:
        return 1.5
    return 2.0 if trial.model == "threads" else 2.0 + trial.workers


def _loops(trial: Trial, client: Helper, burners: Burners) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Return the answers to both loops, and the iterations a second of the CPU work beside them."""
    least, bound = trial.count("least"), trial.number("bound")
    # The window opens and closes while nothing burns: it reads files, and beside CPU threads each read waits for the
    # GIL, as the server does.
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
