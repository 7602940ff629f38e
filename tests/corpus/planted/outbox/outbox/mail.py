"""Mail is put into the outbox by whoever has some, and sent at the end of the run."""
import queue

OUTBOX = queue.SimpleQueue()


def write(n):
    text = " ".join(str(i * n % 97) for i in range(400))
    OUTBOX.put((n, text))
    return len(text)


def flush():
    sent = 0
    while not OUTBOX.empty():
        OUTBOX.get()
        sent += 1
    return sent
