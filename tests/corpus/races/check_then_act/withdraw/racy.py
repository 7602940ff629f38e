# EXPECT: check-then-act | Account.balance | 17, 18
# EXPECT: lost update | Account.balance | 18, 18
"""Enough money? Then take it."""

import threading


class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance

    def __repr__(self):
        return f"<Account {self.owner!r}>"

    def withdraw(self, amount):
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
