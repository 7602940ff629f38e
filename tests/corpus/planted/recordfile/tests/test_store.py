from recordfile.store import SIZE, make


def test_read():
    s = make(10)
    assert s.read(7) == b"7".ljust(SIZE, b".")
    assert s.read(0).startswith(b"0.")
