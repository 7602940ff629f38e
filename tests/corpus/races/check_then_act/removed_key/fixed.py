# EXPECT: clean
"""A key is read once with `get`, or its failure is caught, while another thread pops it."""

import threading

sessions = {"ann": "session"}
names = {"ben": "name"}
kept = {"cid": "kept"}
seen = []


def log_out():
    sessions.pop("ann", None)
    names.pop("ben", None)
    kept.pop("dan", None)


def show():
    session = sessions.get("ann")
    if session is not None:
        seen.append(session)
    if "cid" in kept:
        seen.append(kept["cid"])


def name():
    if "ben" in names:
        try:
            seen.append(names["ben"])
        except KeyError:
            pass


threads = [threading.Thread(target=target) for target in (log_out, show, name)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sessions, names)
