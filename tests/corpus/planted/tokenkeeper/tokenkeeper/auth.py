"""Signs requests with a token that is renewed every hour."""
import hashlib
import time

LIFE = 3600


class Keeper:
    def __init__(self):
        self.renewals = 0
        self.renew()

    def renew(self):
        self.renewals += 1
        self.token = hashlib.sha256(str(self.renewals).encode()).hexdigest()
        self.until = time.monotonic() + LIFE

    def current(self):
        if time.monotonic() >= self.until:
            self.renew()          # each renewal is billed, and ends the token before
        return self.token


keeper = Keeper()


def sign(message):
    token = keeper.current()
    value = 0
    for letter in message + token:
        value = (value * 31 + ord(letter)) % 1_000_003
    return value
