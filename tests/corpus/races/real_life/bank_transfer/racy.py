# EXPECT: lost update | Account.balance | 19, 20
"""Transfers lock the account they take from, not the one they give to."""

import threading


class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance
        self.lock = threading.Lock()

    def __repr__(self):
        return f"<Account {self.owner!r}>"


def transfer(source, target, amount):
    with source.lock:
        source.balance -= amount
        target.balance += amount


ann, bob = Account("ann", 100), Account("bob", 100)
transfers = [
    threading.Thread(target=transfer, args=(ann, bob, 10)),
    threading.Thread(target=transfer, args=(bob, ann, 20)),
]
for each in transfers:
    each.start()
for each in transfers:
    each.join()
print("transferred", ann.owner, bob.owner)
