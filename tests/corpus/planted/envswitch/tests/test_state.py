import os

from envswitch.state import job


def test_job():
    before = int(os.environ["JOBS_LEFT"])
    job(1)
    assert int(os.environ["JOBS_LEFT"]) == before - 1
