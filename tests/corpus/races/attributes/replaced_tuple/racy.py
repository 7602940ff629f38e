# EXPECT: lost update | Score.state | 19, 19
"""An immutable value replaced by one computed from it."""

import threading
from typing import NamedTuple


class State(NamedTuple):
    home: int
    away: int


class Score:
    def __init__(self):
        self.state = State(0, 0)
        self.lock = threading.Lock()

    def home_goal(self):
        self.state = self.state._replace(home=self.state.home + 1)


score = Score()


def play(goals):
    for _ in range(goals):
        score.home_goal()


halves = [threading.Thread(target=play, args=(goals,)) for goals in (2, 3)]
for half in halves:
    half.start()
for half in halves:
    half.join()
print("away:", score.state.away)
