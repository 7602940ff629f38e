# EXPECT: lost update | *box* | 5
import threading

box = [0]
bump = lambda step: box.__setitem__(0, box[0] + step)


def worker(step):
    for _ in range(10):
        bump(step)


threads = [threading.Thread(target=worker, args=(s,)) for s in (1, 100)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(box))
