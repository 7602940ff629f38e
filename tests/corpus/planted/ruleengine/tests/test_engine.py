from ruleengine import engine


def test_feed():
    before = engine.STATE["seen"]
    for _ in range(10):
        engine.feed()
    assert engine.STATE["seen"] == before + 10
