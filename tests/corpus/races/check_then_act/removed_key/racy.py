# EXPECT: check-then-act | *sessions['ann'] | 13, 18, 19
# EXPECT: check-then-act | *names['ben'] | 14, 23, 25
"""A key is tested and then used, while another thread pops it, with a default that raises nothing."""

import threading

sessions = {"ann": "session"}
names = {"ben": "name"}
seen = []


def log_out():
    sessions.pop("ann", None)
    names.pop("ben", None)


def show():
    if "ann" in sessions:
        seen.append(sessions["ann"])


def name():
    if "ben" not in names:
        return
    seen.append(names["ben"])


threads = [threading.Thread(target=target) for target in (log_out, show, name)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sessions, names)
