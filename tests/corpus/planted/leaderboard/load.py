from leaderboard.board import board, play


def work():
    for seed in range(1500):
        board.submit(play(seed))
    return board.rank(1000)
