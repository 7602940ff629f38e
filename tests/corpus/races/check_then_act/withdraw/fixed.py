# EXPECT: clean
"""Enough money? Then take it."""

import threading


class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance
        self.lock = threading.Lock()

    def __repr__(self):
        return f"<Account {self.owner!r}>"

    def withdraw(self, amount):
        with self.lock:
            if self.balance >= amount:
                self.balance -= amount
                return True
            return False


account = Account("bob", 100)
paid = [None, None]


def spend(index, amount):
    paid[index] = account.withdraw(amount)


spenders = [threading.Thread(target=spend, args=(index, 30)) for index in range(2)]
for spender in spenders:
    spender.start()
for spender in spenders:
    spender.join()
print(paid)
