"""What all tests need before the first of them."""

import signal

# A job in the background of a shell without a terminal, as CI is, ignores SIGINT, and every process it starts inherits
# that.  Tests that press Ctrl-C need the usual state.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Projects that tests evaluate, with tests of their own.
collect_ignore = ["corpus/evaluate"]
