"""Parts go through a queue to workers; results come back through another."""
import queue
import threading


def grind(part):
    return sum(i * part % 89 for i in range(6000))


def run(parts, workers=2):
    todo, done = queue.Queue(), queue.Queue()

    def worker():
        while (part := todo.get()) is not None:
            done.put((part, grind(part)))

    threads = [threading.Thread(target=worker) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for part in parts:
        todo.put(part)
    for _ in threads:
        todo.put(None)
    for thread in threads:
        thread.join()
    return dict(done.get() for _ in parts)
