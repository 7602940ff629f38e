"""A metric that gilscope does not have: what one adds it by, here and in a measured process (see sitecustomize)."""

JOULES = 2.5   # what its reader returns


def install():
    from gilscope.toolkit import metrics
    from gilscope.toolkit.measure.child import metrics as readings

    metrics.CELL_METRICS = (*metrics.CELL_METRICS, metrics.Metric(name="energy_joules", column="energy", unit=" J"))
    readings.READERS = (*readings.READERS, lambda _pids: {"energy_joules": JOULES})
