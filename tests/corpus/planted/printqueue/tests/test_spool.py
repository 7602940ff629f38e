from printqueue import spool


def test_spool():
    a = spool.spool(3)
    assert spool.spool(3) == a + 1
