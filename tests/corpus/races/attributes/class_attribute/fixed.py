# EXPECT: clean
"""Instances counted in a class attribute."""

import threading


class Session:
    opened = 0
    _lock = threading.Lock()

    def __init__(self, user):
        self.user = user
        with Session._lock:
            Session.opened += 1


def log_in(users):
    return [Session(user) for user in users]


logins = [threading.Thread(target=log_in, args=(["ann", "ben", "cy"],)) for _ in range(2)]
for login in logins:
    login.start()
for login in logins:
    login.join()
print("sessions were opened:", Session.opened > 0)
