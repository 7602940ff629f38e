from hashmix import mix


def test_mix():
    assert mix(0) == 17
    assert mix(10) == mix(10)
