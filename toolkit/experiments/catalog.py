"""The list of experiments, in the order in which they are shown and run."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import UnknownNameError, suggestion

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.base import Experiment

# Module and class by name; `find` imports the module, so that listing names imports none.
EXPERIMENTS = {
    "countdown": "gilscope.toolkit.experiments.countdown.experiment:CountdownExperiment",
    "switch-interval": "gilscope.toolkit.experiments.switch_interval:SwitchIntervalExperiment",
    "hashing": "gilscope.toolkit.experiments.hashing.experiment:HashingExperiment",
    "convoy": "gilscope.toolkit.experiments.convoy.experiment:ConvoyExperiment",
    "convoy-interval": "gilscope.toolkit.experiments.convoy_interval:ConvoyIntervalExperiment",
    "affinity": "gilscope.toolkit.experiments.affinity.experiment:AffinityExperiment",
    "gil-trace": "gilscope.toolkit.experiments.gil_trace.experiment:GilTraceExperiment",
    "signals": "gilscope.toolkit.experiments.signals.experiment:SignalsExperiment",
    "lost-updates": "gilscope.toolkit.experiments.lost_updates.experiment:LostUpdatesExperiment",
    "downloads": "gilscope.toolkit.experiments.downloads.experiment:DownloadsExperiment",
    "aggregator": "gilscope.toolkit.experiments.aggregator.experiment:AggregatorExperiment",
    "scaling": "gilscope.toolkit.experiments.scaling.experiment:ScalingExperiment",
    "channels": "gilscope.toolkit.experiments.channels.experiment:ChannelsExperiment",
}


def find(name: str) -> Experiment:
    """Return the experiment `name`.

    Raises:
        UnknownNameError: no experiment has that name.
    """
    if name not in EXPERIMENTS:
        hint = suggestion(name, EXPERIMENTS)
        raise UnknownNameError(f"unknown experiment {name!r}{hint}; `gilscope experiment list` shows all")
    module, _, attribute = EXPERIMENTS[name].partition(":")
    found: Experiment = getattr(importlib.import_module(module), attribute)()
    return found
