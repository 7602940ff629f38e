# EXPECT: unsynchronised read/write | Player.position | 13, 17
"""An attribute as the target of a for loop."""

import threading


class Player:
    def __init__(self, tracks):
        self.tracks = tracks
        self.position = 0

    def play(self):
        for self.position in range(len(self.tracks)):
            pass

    def where(self):
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
