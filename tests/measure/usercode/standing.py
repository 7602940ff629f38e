"""A function that tells what its process has inherited."""

import json
import os
import resource
import signal
from pathlib import Path


def tell(path):
    """Write it down."""
    ignored = [number.name for number in signal.Signals if signal.getsignal(number) == signal.SIG_IGN]
    Path(path).write_text(json.dumps({
        "ignored": ignored, "interruptible": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0], "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "cpus": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
    }))


if __name__ == "__main__":
    import sys

    tell(sys.argv[1])
