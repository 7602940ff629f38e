"""The experiments there are, in the order in which they are shown and run."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import TYPE_CHECKING

from toolkit.errors import UnknownNameError

if TYPE_CHECKING:
    from toolkit.experiments.base import Experiment

# By name: where its class is.  Imported when asked for.
EXPERIMENTS = {
    "countdown": "toolkit.experiments.countdown:Countdown",
    "switch-interval": "toolkit.experiments.switch_interval:SwitchInterval",
    "hashing": "toolkit.experiments.hashing:Hashing",
    "convoy": "toolkit.experiments.convoy:Convoy",
    "convoy-interval": "toolkit.experiments.convoy_interval:ConvoyInterval",
    "affinity": "toolkit.experiments.affinity:Affinity",
    "gil-trace": "toolkit.experiments.gil_trace:GilTrace",
    "signals": "toolkit.experiments.signals:Signals",
    "lost-updates": "toolkit.experiments.lost_updates:LostUpdates",
    "downloads": "toolkit.experiments.downloads:Downloads",
    "aggregator": "toolkit.experiments.aggregator:Aggregator",
    "channels": "toolkit.experiments.channels:Channels",
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
