from hookbuilt import mix


def test_mix():
    assert mix(0) == 17
