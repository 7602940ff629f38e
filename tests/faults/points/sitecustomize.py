"""Send a gilscope command signals when it begins a function for the N-th time; $POINT is "FILE:NAME N SIGNAL ...".

With "FILE:NAME N then " before it, calls count from the N-th beginning of that other function on.
It is in a folder of PYTHONPATH, so every Python that the command starts imports it; only the command itself is meant.
"""

import os
import sys

TOOL = 4   # of sys.monitoring: nobody's in particular


def is_in(code, file, name):
    return code.co_qualname == name and code.co_filename.endswith(f"/gilscope/toolkit/{file}")


def plant(point, main):
    signals = [int(each) for each in point.rpartition(" then ")[2].split()[2:]]
    awaited = [(*place.split(":"), int(number)) for place, number, *_ in map(str.split, point.split(" then "))]
    begun = 0

    def begin(code, _offset):
        nonlocal begun
        if not any(is_in(code, file, name) for file, name, _ in awaited):
            return sys.monitoring.DISABLE
        file, name, number = awaited[0]
        begun += is_in(code, file, name)
        if begun == number and len(awaited) > 1:
            begun = 0
            awaited.pop(0)
        elif begun == number and os.getpid() == main:
            for each in signals:
                os.kill(main, each)
        return None

    sys.monitoring.use_tool_id(TOOL, "gilscope tests")
    sys.monitoring.register_callback(TOOL, sys.monitoring.events.PY_START, begin)
    sys.monitoring.set_events(TOOL, sys.monitoring.events.PY_START)


if "POINT" in os.environ and sys.orig_argv[1:3] == ["-m", "gilscope"]:
    plant(os.environ["POINT"], os.getpid())
