"""A bank: transfers lock both accounts in order, an auditor locks them all."""

import random
import threading
from contextlib import ExitStack


class InsufficientFunds(Exception):
    pass


class Account:
    def __init__(self, number, balance):
        self.number = number
        self.balance = balance
        self.history = []
        self.lock = threading.RLock()

    def __repr__(self):
        return f"<Account {self.number}>"

    def withdraw(self, amount):
        with self.lock:
            if amount > self.balance:
                raise InsufficientFunds(f"{self}: {self.balance} < {amount}")
            self.balance -= amount
            self.history.append(-amount)

    def deposit(self, amount):
        with self.lock:
            self.balance += amount
            self.history.append(amount)


class Bank:
    def __init__(self, accounts, balance):
        self.accounts = [Account(number, balance) for number in range(accounts)]
        self.refused = 0
        self.refused_lock = threading.Lock()

    def transfer(self, source, target, amount):
        first, second = sorted((source, target), key=lambda account: account.number)
        with first.lock, second.lock:
            try:
                source.withdraw(amount)
            except InsufficientFunds:
                with self.refused_lock:
                    self.refused += 1
                return False
            target.deposit(amount)
            return True

    def total(self):
        with ExitStack() as locks:
            for account in self.accounts:
                locks.enter_context(account.lock)
            return sum(account.balance for account in self.accounts)


class Teller(threading.Thread):
    def __init__(self, bank, seed, transfers):
        super().__init__(name=f"teller-{seed}")
        self.bank = bank
        self.random = random.Random(seed)
        self.transfers = transfers
        self.done = 0

    def run(self):
        for _ in range(self.transfers):
            source, target = self.random.sample(self.bank.accounts, 2)
            if self.bank.transfer(source, target, self.random.randint(1, 60)):
                self.done += 1


def audit(bank, times, totals):
    for _ in range(times):
        totals.append(bank.total())


def main():
    bank = Bank(accounts=20, balance=500)
    totals = []
    tellers = [Teller(bank, seed, 7_000) for seed in range(4)]
    auditor = threading.Thread(target=audit, args=(bank, 200, totals), name="auditor")
    for thread in (*tellers, auditor):
        thread.start()
    for thread in (*tellers, auditor):
        thread.join()
    assert sum(teller.done for teller in tellers) + bank.refused == 4 * 7_000
    for account in bank.accounts:
        assert 500 + sum(account.history) == account.balance, account
    print("checksum", bank.total(), set(totals))


if __name__ == "__main__":
    main()
