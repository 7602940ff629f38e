"""A thread that runs no Python, faulthandler's, waits as it is meant to: it is in nobody's way."""

import pytest

from gilscope.toolkit.gil.records import SpanKind

PROGRAM = """
import faulthandler, os
reading, writing = os.pipe()
faulthandler.dump_traceback_later(0.05, file=writing)
os.read(reading, 1)
"""


@pytest.mark.builds("gil", "free")
def test_watchdog_is_idle(record):
    process = record(PROGRAM).process
    (watchdog,) = (thread for thread in process.threads if not thread.main)
    assert watchdog.totals[SpanKind.PARK].count == 0
    assert watchdog.totals[SpanKind.IDLE].count >= 1
