# EXPECT: lost update | Session.opened | 12, 12
"""Instances counted in a class attribute."""

import threading


class Session:
    opened = 0

    def __init__(self, user):
        self.user = user
        Session.opened += 1


def log_in(users):
    return [Session(user) for user in users]


logins = [threading.Thread(target=log_in, args=(["ann", "ben", "cy"],)) for _ in range(2)]
for login in logins:
    login.start()
for login in logins:
    login.join()
print("sessions were opened:", Session.opened > 0)
