# EXPECT: clean
import threading
from concurrent.futures import ThreadPoolExecutor, wait

lock = threading.Lock()
tally = {"jobs": 0, "letters": 0}


def shout(text):
    return text.upper() + "!"


def account(future):
    with lock:
        tally["jobs"] += 1
        tally["letters"] += len(future.result())


with ThreadPoolExecutor(max_workers=3) as pool:
    futures = [pool.submit(shout, text) for text in ("a", "bc", "def", "ghij")]
    for future in futures:
        future.add_done_callback(account)
    done, rest = wait(futures)
print(sorted(f.result() for f in done), len(rest), tally)
