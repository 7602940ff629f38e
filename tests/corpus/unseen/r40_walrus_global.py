# EXPECT: check-then-act or lost update | global pending in r40_walrus_global.py | 9, 10
import threading

pending = 12


def drain(log):
    global pending
    while (n := pending) > 0:
        pending = n - 1
        log.append(n)


logs = [], []
threads = [threading.Thread(target=drain, args=(log,)) for log in logs]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sum(map(len, logs)) >= 12)
