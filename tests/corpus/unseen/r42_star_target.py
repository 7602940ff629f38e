# EXPECT: lost update or torn multi-step write | *rest* | 10
import threading


class Deck:
    def __init__(self, cards):
        self.rest = list(cards)

    def draw(self):
        top, *self.rest = self.rest
        return top


def player(deck, hand):
    for _ in range(3):
        hand.append(deck.draw())


deck = Deck(range(40))
hands = [[], []]
threads = [threading.Thread(target=player, args=(deck, hand)) for hand in hands]
for t in threads:
    t.start()
for t in threads:
    t.join()
print([len(hand) for hand in hands])
