from concurrent.futures import ThreadPoolExecutor

from lockedlru.cache import Cache, page


def test_cache():
    c = Cache(1)
    assert c.get(1, str) == "1"
    assert c.get(2, str) == "2"


def test_threads():
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(page, [3] * 40))) == 1
