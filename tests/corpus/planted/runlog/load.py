import threading

from runlog.capture import run


def work():
    name = f"job-{threading.get_ident()}"
    return len([line for line in run(name).splitlines() if line.startswith(name)])
