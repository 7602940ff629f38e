# EXPECT: clean
"""Two items of a list swapped by a tuple assignment."""

import threading

deck = list(range(6))
table = threading.Lock()


def shuffle(pairs):
    for left, right in pairs:
        with table:
            deck[left], deck[right] = deck[right], deck[left]


dealer = threading.Thread(target=shuffle, args=([(0, 1), (2, 3)],))
cheat = threading.Thread(target=shuffle, args=([(1, 0), (3, 2)],))
dealer.start()
cheat.start()
dealer.join()
cheat.join()
print("cards:", len(deck))
