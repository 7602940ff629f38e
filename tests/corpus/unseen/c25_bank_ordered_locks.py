# EXPECT: clean
"""Bank: the locks of all accounts involved are taken in order by an ExitStack."""
import threading
from contextlib import ExitStack


class Account:
    def __init__(self, number, balance):
        self.number = number
        self.balance = balance
        self.lock = threading.Lock()


class Bank:
    def __init__(self, balances):
        self.accounts = [Account(n, b) for n, b in enumerate(balances)]

    def _locked(self, *accounts):
        stack = ExitStack()
        with stack:
            for account in sorted(accounts, key=lambda a: a.number):
                stack.enter_context(account.lock)
            return stack.pop_all()

    def transfer(self, source, target, amount):
        a, b = self.accounts[source], self.accounts[target]
        with self._locked(a, b):
            if a.balance < amount:
                return False
            a.balance -= amount
            b.balance += amount
            return True

    def total(self):
        with self._locked(*self.accounts):
            return sum(a.balance for a in self.accounts)


def clerk(bank, orders, totals):
    for order in orders:
        bank.transfer(*order)
        totals.append(bank.total())


def main():
    bank = Bank([100, 100, 100])
    orders = [
        [(0, 1, 10), (1, 2, 10), (2, 0, 10)],
        [(2, 1, 5), (1, 0, 5), (0, 2, 5)],
        [(1, 0, 1), (0, 2, 1), (2, 1, 1)],
    ]
    totals = []
    threads = [threading.Thread(target=clerk, args=(bank, o, totals)) for o in orders]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(set(totals), [a.balance for a in bank.accounts])


main()
