"""How many jobs are left of today's allowance; child programs read it from the environment."""
import os
import threading

_lock = threading.Lock()
os.environ.setdefault("JOBS_LEFT", "100000000")


def job(n):
    with _lock:
        left = int(os.environ["JOBS_LEFT"])
        if left <= 0:
            raise RuntimeError("no jobs left today")
        os.environ["JOBS_LEFT"] = str(left - 1)
    return sum(i * n % 23 for i in range(4000))
