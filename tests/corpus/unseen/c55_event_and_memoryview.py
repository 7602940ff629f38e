# EXPECT: clean
import threading

screen = bytearray(b"." * 12)
frame = {"ready": False}
drawn = [threading.Event() for _ in range(3)]


def draw(part, view):
    for i in range(len(view)):
        view[i] = ord("a") + part
        view[i] += 1
    drawn[part].set()


def show(out):
    for event in drawn:
        event.wait()
    frame["ready"] = True
    out.append(bytes(screen).decode())
    screen[0:4] = b"done"


out = []
shower = threading.Thread(target=show, args=(out,))
shower.start()
window = memoryview(screen)
for part in range(3):
    view = window[4 * part:4 * part + 4]
    threading.Thread(target=draw, args=(part, view)).start()
shower.join()
print(out, screen, frame)
