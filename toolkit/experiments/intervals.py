"""The switch interval and what Linux makes of short ones: facts that several experiments go by."""

DEFAULT = "5ms"          # sys.getswitchinterval() of every CPython since 3.2
SECONDS = 0.005          # the same
FINE = "1ns"             # the timer slack that leaves an interval as short as it was asked for
USUAL_SLACK = "50 µs"    # of Linux, prctl(2): PR_SET_TIMERSLACK
