import speedups


def test_same():
    assert speedups.mix(1000) == speedups._mix(1000)
