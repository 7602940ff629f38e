"""The experiments there are, in the order in which they are shown and run."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import UnknownNameError

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.base import Experiment

# By name: where its class is.  Imported when asked for.
EXPERIMENTS = {
    "countdown": "gilscope.toolkit.experiments.countdown.experiment:Countdown",
    "switch-interval": "gilscope.toolkit.experiments.switch_interval.experiment:SwitchInterval",
    "hashing": "gilscope.toolkit.experiments.hashing.experiment:Hashing",
    "convoy": "gilscope.toolkit.experiments.convoy.experiment:Convoy",
    "convoy-interval": "gilscope.toolkit.experiments.convoy.interval_experiment:ConvoyInterval",
    "affinity": "gilscope.toolkit.experiments.affinity.experiment:Affinity",
    "gil-trace": "gilscope.toolkit.experiments.gil_trace.experiment:GilTrace",
    "signals": "gilscope.toolkit.experiments.signals.experiment:Signals",
    "lost-updates": "gilscope.toolkit.experiments.lost_updates.experiment:LostUpdates",
    "downloads": "gilscope.toolkit.experiments.downloads.experiment:Downloads",
    "aggregator": "gilscope.toolkit.experiments.aggregator.experiment:Aggregator",
    "channels": "gilscope.toolkit.experiments.channels.experiment:Channels",
}


def find(name: str) -> Experiment:
    """Return the experiment `name`.

    Raises:
        UnknownNameError: there is none of that name.
    """
    if name not in EXPERIMENTS:
        close = get_close_matches(name, EXPERIMENTS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UnknownNameError(f"unknown experiment {name!r}{hint}; `gilscope experiment list` shows all")
    module, _, attribute = EXPERIMENTS[name].partition(":")
    found: Experiment = getattr(importlib.import_module(module), attribute)()
    return found
