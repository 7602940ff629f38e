# EXPECT: lost update | Player.speed | 22, 37, 39
"""Game: physics runs in one thread, the keyboard in another."""
import threading


class Player:
    def __init__(self, name):
        self.name = name
        self.place = 0.0
        self.speed = 0.0
        self.keys = 0


class Physics:
    friction = 0.5

    def __init__(self, players):
        self.players = players

    def step(self):
        for player in self.players:
            player.speed *= self.friction

    def run(self, frames):
        for _ in range(frames):
            self.step()


class Keyboard:
    def __init__(self, player, keys):
        self.player = player
        self.keys = keys

    def run(self):
        for key in self.keys:
            if key == "right":
                self.player.speed += 1.0
            elif key == "left":
                self.player.speed -= 1.0
            self.player.keys += 1


def main():
    player = Player("hero")
    physics = Physics([player])
    keyboard = Keyboard(player, ["right", "left", "right", "jump", "left", "right"])
    threads = [
        threading.Thread(target=physics.run, args=(10,), name="physics"),
        threading.Thread(target=keyboard.run, name="keyboard"),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(player.name, player.keys)


main()
