# EXPECT: clean
import threading

ping = threading.Semaphore(1)
pong = threading.Semaphore(0)
ball = {"hits": 0, "last": None}


def play(name, mine, other, rounds, log):
    for _ in range(rounds):
        mine.acquire()
        ball["hits"] += 1
        ball["last"], before = name, ball["last"]
        log.append((ball["hits"], before))
        other.release()


logs = [[], []]
threads = [
    threading.Thread(target=play, args=("ping", ping, pong, 3, logs[0])),
    threading.Thread(target=play, args=("pong", pong, ping, 3, logs[1])),
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(logs, ball)
