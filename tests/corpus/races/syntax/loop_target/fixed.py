# EXPECT: clean
"""An attribute as the target of a for loop."""

import threading


class Player:
    def __init__(self, tracks):
        self.tracks = tracks
        self.position = 0
        self.lock = threading.Lock()

    def play(self):
        for position in range(len(self.tracks)):
            with self.lock:
                self.position = position

    def where(self):
        with self.lock:
            return self.position


player = Player(["intro", "song", "outro"])
asked = []
playing = threading.Thread(target=player.play)
asking = threading.Thread(target=lambda: asked.append(player.where()))
playing.start()
asking.start()
playing.join()
asking.join()
print(player.where(), len(asked))
