"""What all tests need before the first of them."""

import signal

from hypothesis import HealthCheck, settings

# A job in the background of a shell without a terminal, as CI is, ignores SIGINT, and every process it starts inherits
# that.  Tests that press Ctrl-C need the usual state.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples each time, however long a busy machine takes for one: chance decides neither what is tried nor when
# it is given up.
settings.register_profile("gilscope", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gilscope")

# Projects that tests evaluate, with tests of their own.
collect_ignore = ["corpus/evaluate"]
