"""Threads whose keys and containers come and go, for the C core under a sanitizer: `... transient_keys [SECONDS]`.

Needs nothing but the standard library, so that it runs on any build.  Wherever a thread looks a location up, another
may be forgetting it.
"""

from __future__ import annotations

import random
import sys
import threading
import time

shared = {}
lists = [[0] * 8 for _ in range(4)]
members = set()


class Thing:
    """Has attributes that are set and deleted by all."""


thing = Thing()


def churn(seed, end):
    """Insert, look up and remove keys that are made each time: strings, floats, tuples and large integers."""
    below = random.Random(seed).randrange
    while time.monotonic() < end:
        for _ in range(200):
            number = below(600)
            for key in (f"key-{number}", number + 0.5, (number, f"part-{number}"), number << 70):
                shared[key] = number
                shared.get(key)
                shared.pop(key, None)
            members.add(f"member-{number}")
            members.discard(f"member-{number - 1}")


def replace(seed, end):
    """Use lists, parts of them and attributes, and put new containers into their places."""
    below = random.Random(seed).randrange
    while time.monotonic() < end:
        for _ in range(200):
            at = below(4)
            items = lists[at]
            items[below(4)] = {f"inner-{at}": [at]}
            items[0:2] = [None, [at]]
            items.append(at)
            if len(items) > 64:
                lists[at] = [0] * 8
            setattr(thing, f"name_{below(300)}", [at])
            thing.__dict__.pop(f"name_{below(300)}", None)


def main(seconds):
    """Run four threads for so long."""
    end = time.monotonic() + seconds
    bodies = (churn, churn, churn, replace)
    threads = [threading.Thread(target=body, args=(seed, end)) for seed, body in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("end")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
