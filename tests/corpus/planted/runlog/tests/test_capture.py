from runlog.capture import run


def test_run():
    out = run("a")
    assert len(out.splitlines()) == 400
    assert out.startswith("a 0 0")
