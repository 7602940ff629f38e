# EXPECT: check-then-act | *ids['ann'] | 10, 11, 12
"""Numbers given out in order of arrival, remembered like a memo: not idempotent."""

import threading

ids = {}


def id_of(name):
    if name not in ids:
        ids[name] = len(ids) + 1
    return ids[name]


def register(names, out):
    out.extend(id_of(name) > 0 for name in names)


registered = [[], []]
threads = [threading.Thread(target=register, args=(["ann", "ben"], out)) for out in registered]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(registered)
