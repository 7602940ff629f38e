# EXPECT: clean
"""Game loop: it owns the world; input comes through a queue, quit by a flag."""
import queue
import threading
import time


class World:
    def __init__(self):
        self.players = {}
        self.frames = 0

    def apply(self, name, step):
        self.players[name] = self.players.get(name, 0) + step

    def tick(self):
        self.frames += 1


class Game(threading.Thread):
    def __init__(self):
        super().__init__(name="game")
        self.world = World()
        self.inputs = queue.SimpleQueue()
        self.running = True

    def drain(self):
        while True:
            try:
                name, step = self.inputs.get_nowait()
            except queue.Empty:
                return
            self.world.apply(name, step)

    def run(self):
        while self.running:
            self.drain()
            self.world.tick()
            time.sleep(0.001)
        self.drain()


def keyboard(game, name, steps):
    for step in steps:
        game.inputs.put((name, step))


def main():
    game = Game()
    game.start()
    keyboards = [
        threading.Thread(target=keyboard, args=(game, "ann", [1, 1, -1])),
        threading.Thread(target=keyboard, args=(game, "bob", [5, -2])),
    ]
    for k in keyboards:
        k.start()
    for k in keyboards:
        k.join()
    game.running = False
    game.join()
    print(sorted(game.world.players.items()), game.world.frames > 0)


main()
