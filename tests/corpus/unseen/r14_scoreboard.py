# EXPECT: check-then-act | Scoreboard.best | 13, 14
"""Scoreboard of an arcade hall."""
import threading


class Scoreboard:
    def __init__(self):
        self.best = 0
        self.entries = []

    def submit(self, player, score):
        self.entries.append((player, score))
        if score > self.best:
            self.best = score
            return "record"
        return "ok"


class Cabinet(threading.Thread):
    def __init__(self, board, player, seed):
        super().__init__(name="cabinet-" + player)
        self.board = board
        self.player = player
        self.seed = seed
        self.played = 0

    def scores(self):
        value = self.seed
        for _ in range(12):
            value = (value * 37 + 11) % 1009
            yield value + 1

    def run(self):
        for score in self.scores():
            self.board.submit(self.player, score)
            self.played += 1


def main():
    board = Scoreboard()
    cabinets = [
        Cabinet(board, "ann", 7),
        Cabinet(board, "ben", 13),
        Cabinet(board, "cyd", 29),
    ]
    for cabinet in cabinets:
        cabinet.start()
    for cabinet in cabinets:
        cabinet.join()
    print("games", sum(c.played for c in cabinets), len(board.entries))


if __name__ == "__main__":
    main()
