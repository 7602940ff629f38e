# EXPECT: lost update | Account._balance | 14, 18, 26 | atomicity
"""Each method takes the lock, the caller's get and set together do not."""

import threading


class Account:
    def __init__(self):
        self._balance = 0
        self.lock = threading.RLock()

    def get(self):
        with self.lock:
            return self._balance

    def set(self, value):
        with self.lock:
            self._balance = value


account = Account()


def deposit(amounts):
    for amount in amounts:
        account.set(account.get() + amount)


tellers = [threading.Thread(target=deposit, args=([10, 20],)) for _ in range(2)]
for teller in tellers:
    teller.start()
for teller in tellers:
    teller.join()
print("deposited", account.get() > 0)
