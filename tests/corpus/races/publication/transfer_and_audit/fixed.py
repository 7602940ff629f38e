# EXPECT: clean
"""Money on its way is in no account when the auditor looks."""

import threading


class Account:
    def __init__(self, balance):
        self.balance = balance


here, there = Account(100), Account(0)
books = threading.Lock()


def transfer(amount):
    with books:
        here.balance -= amount
        there.balance += amount


def audit(out):
    with books:
        out.append(here.balance + there.balance)


sums = []
transferring = threading.Thread(target=transfer, args=(40,))
auditing = threading.Thread(target=audit, args=(sums,))
transferring.start()
auditing.start()
transferring.join()
auditing.join()
print(here.balance, there.balance, len(sums))
