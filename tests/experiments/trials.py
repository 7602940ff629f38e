"""A trial without the frame around it: programs of experiments called as functions."""

import sys

from gilscope.toolkit.measure.child.program import ProgramSpec, ProgramTrial


def make_trial(folder, *, workers=2, scales=None, host=sys.executable, **parameters):
    """Return a trial with these parameters, in `folder`."""
    return ProgramTrial(ProgramSpec(
        name="test", progress_timeout=120.0, folder=str(folder), program="none", build="test", model="threads",
        workers=workers, gil=None, parameters=parameters, scales=dict(scales or {}), host=host))
