# EXPECT: clean
"""Each account has its lock, but the attribute belongs to the class."""

import threading


class Account:
    total_deposits = 0
    class_lock = threading.Lock()

    def __init__(self):
        self.lock = threading.RLock()
        self.balance = 0

    def deposit(self, amount):
        with self.lock:
            self.balance += amount
        with Account.class_lock:
            Account.total_deposits += amount


accounts = [Account(), Account()]
tellers = [threading.Thread(target=account.deposit, args=(50,)) for account in accounts]
for teller in tellers:
    teller.start()
for teller in tellers:
    teller.join()
print([account.balance for account in accounts])
