# EXPECT: lost update | *balance* | 31, 33, 34
"""Bank with a lock in each account."""
import threading


class InsufficientFunds(Exception):
    pass


class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance
        self.lock = threading.Lock()

    def __repr__(self):
        return "<Account %r>" % self.owner


class Bank:
    def __init__(self):
        self.accounts = {}

    def open(self, owner, balance):
        self.accounts[owner] = Account(owner, balance)

    def transfer(self, source, target, amount):
        source = self.accounts[source]
        target = self.accounts[target]
        with source.lock:
            if source.balance < amount:
                raise InsufficientFunds(source.owner)
            source.balance -= amount
            target.balance += amount


def standing_order(bank, source, target, times):
    for _ in range(times):
        bank.transfer(source, target, 5)


def main():
    bank = Bank()
    bank.open("ann", 10_000)
    bank.open("bob", 10_000)
    threads = [
        threading.Thread(target=standing_order, args=(bank, "ann", "bob", 20)),
        threading.Thread(target=standing_order, args=(bank, "bob", "ann", 20)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(sorted(bank.accounts))


if __name__ == "__main__":
    main()
