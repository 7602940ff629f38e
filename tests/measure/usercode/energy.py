"""A metric that gilscope does not have: what one adds it by, here and in a measured process (see sitecustomize)."""

import itertools

JOULES = 2.5   # that each reading of the counter adds


def install():
    from gilscope.toolkit import metrics
    from gilscope.toolkit.measure.child import metrics as readings

    counter = itertools.count()
    metrics.CELL_METRICS = (*metrics.CELL_METRICS, metrics.Metric(name="energy_joules", column="energy", unit=" J"))
    readings.TOTAL_READERS = (*readings.TOTAL_READERS, lambda _pids: {"energy_joules": JOULES * next(counter)})
