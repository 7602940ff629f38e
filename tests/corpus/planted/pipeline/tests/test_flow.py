from pipeline.flow import grind, run


def test_run():
    assert run([1, 2]) == {1: grind(1), 2: grind(2)}
