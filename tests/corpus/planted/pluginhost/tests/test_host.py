from pluginhost import host


def test_send():
    assert host.send({"from": "a", "text": " x "})["text"] == "x"
    assert len(host.FILTERS) == 2
