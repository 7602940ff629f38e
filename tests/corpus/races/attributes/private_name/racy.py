# EXPECT: lost update | Vault*__coins | 13, 13
"""A name-mangled attribute."""

import threading


class Vault:
    def __init__(self):
        self.__coins = 0
        self.__door = threading.Lock()

    def drop(self, coins):
        self.__coins += coins

    def empty(self):
        return self.__coins == 0


vault = Vault()
droppers = [threading.Thread(target=vault.drop, args=(amount,)) for amount in (5, 7)]
for dropper in droppers:
    dropper.start()
for dropper in droppers:
    dropper.join()
print("empty:", vault.empty())
