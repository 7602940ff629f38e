# EXPECT: check-then-act or lost update | Cart.owner | 14, 14
"""The first visitor becomes the owner, in a conditional expression."""

import threading


class Cart:
    owner = None

    def __init__(self):
        self.lock = threading.Lock()

    def claim(self, user):
        self.owner = user if self.owner is None else self.owner


cart = Cart()
users = [threading.Thread(target=cart.claim, args=(name,)) for name in ("ann", "ben")]
for user in users:
    user.start()
for user in users:
    user.join()
print("owned:", cart.owner is not None)
