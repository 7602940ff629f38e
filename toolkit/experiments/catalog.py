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
    "countdown": "gilscope.toolkit.experiments.countdown:Countdown",
    "switch-interval": "gilscope.toolkit.experiments.switch_interval:SwitchInterval",
    "hashing": "gilscope.toolkit.experiments.hashing:Hashing",
    "convoy": "gilscope.toolkit.experiments.convoy:Convoy",
    "convoy-interval": "gilscope.toolkit.experiments.convoy_interval:ConvoyInterval",
    "affinity": "gilscope.toolkit.experiments.affinity:Affinity",
    "gil-trace": "gilscope.toolkit.experiments.gil_trace:GilTrace",
    "signals": "gilscope.toolkit.experiments.signals:Signals",
    "lost-updates": "gilscope.toolkit.experiments.lost_updates:LostUpdates",
    "downloads": "gilscope.toolkit.experiments.downloads:Downloads",
    "aggregator": "gilscope.toolkit.experiments.aggregator:Aggregator",
    "channels": "gilscope.toolkit.experiments.channels:Channels",
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
