from tickclock.clock import tick, ticks_so_far


def test_tick():
    a = tick()
    assert tick() == a + 1
    assert ticks_so_far() == a + 1
