from leaderboard.board import Board, play


def test_rank():
    b = Board()
    for s in (5, 1, 9):
        b.submit(s)
    assert b.scores == [1, 5, 9]
    assert b.rank(9) == 1


def test_play():
    assert play(1) == play(1)
