# EXPECT: iteration during change | *sessions* | 11, 15
"""Sessions are listed while others log in."""

import threading

sessions = {"root": 0}


def log_in(users):
    for user in users:
        sessions[user] = len(user)


def expired(limit, found):
    for user, age in sessions.items():
        if age > limit:
            found.append(user)


old = []
doorman = threading.Thread(target=log_in, args=(["ann", "ben", "cyd"],))
sweeper = threading.Thread(target=expired, args=(10, old))
doorman.start()
sweeper.start()
doorman.join()
sweeper.join()
print(old, len(sessions))
