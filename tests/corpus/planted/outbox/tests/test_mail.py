from outbox.mail import flush, write


def test_flush():
    flush()
    write(1), write(2)
    assert flush() == 2
