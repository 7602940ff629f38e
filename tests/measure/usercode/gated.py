"""A user's function that stops the run at a known place: in the second round, until it may go on."""

import json
import os
import threading
import time
from pathlib import Path


def work(place):
    """Work a little in round 0; later wait for ever, unless the file `go` is there, after saying so by `waiting`."""
    time.sleep(0.002)
    kept = Path(place, "results", "gated", "run.json")   # not there yet in the trial
    if kept.exists() and json.loads(kept.read_text())["rounds_done"] and not Path(place, "go").exists():
        Path(place, "waiting").touch()
        threading.Event().wait()
    return os.getpid()


def wait_for_go(place):
    """Say by `waiting` in the second round that it waits until the file `go` is there; then go on."""
    kept = Path(place, "results", "gated", "run.json")
    if kept.exists() and json.loads(kept.read_text())["rounds_done"]:
        Path(place, "waiting").touch()
        while not Path(place, "go").exists():
            time.sleep(0.01)
    time.sleep(0.002)


def wait_at_once(place):
    """Wait for ever from the first round on, after saying so, unless the file `go` is there."""
    time.sleep(0.002)
    if Path(place, "results", "gated", "run.json").exists() and not Path(place, "go").exists():
        Path(place, "waiting").touch()
        threading.Event().wait()


def places():
    return [os.environ["GATED_PLACE"]]
