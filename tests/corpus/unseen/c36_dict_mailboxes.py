# EXPECT: clean
import threading
import time

boxes = {}


class Letter:
    def __init__(self, to, text):
        self.to = to
        self.text = text
        self.read = False


def postman(letters):
    for to, text in letters:
        letter = Letter(to, text)
        letter.text += "!"
        boxes[to] = letter


def owner(name, out):
    while (letter := boxes.pop(name, None)) is None:
        time.sleep(0.001)
    letter.read = True
    out.append((name, letter.text, letter.read))


mail = [("ann", "hi"), ("bob", "yo"), ("cyd", "hey")]
out = []
threads = [threading.Thread(target=postman, args=(mail,))]
threads += [threading.Thread(target=owner, args=(name, out)) for name, _ in mail]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(out), len(boxes))
