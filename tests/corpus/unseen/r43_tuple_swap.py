# EXPECT: torn multi-step write or lost update | *pair* | 9
import threading

pair = ["left", "right"]


def flip(times):
    for _ in range(times):
        pair[0], pair[1] = pair[1], pair[0]


threads = [threading.Thread(target=flip, args=(n,)) for n in (5, 8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(pair))
