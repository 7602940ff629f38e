# EXPECT: torn multi-step write or lost update | *screen* | 9, 10
import threading

screen = bytearray(b"................")


def invert(times):
    for _ in range(times):
        row = screen[4:8]
        screen[4:8] = bytes(b ^ 0x20 for b in row)


threads = [threading.Thread(target=invert, args=(n,)) for n in (3, 5)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(screen), screen[:4])
