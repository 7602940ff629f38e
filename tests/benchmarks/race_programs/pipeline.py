"""Numbers go through a pipeline of stages, each a thread with a queue before and one behind it."""

import queue
import threading

END = object()


class Stage(threading.Thread):
    """Takes items from one queue, puts what `work` makes of them into the next."""

    def __init__(self, name, work, source, target):
        super().__init__(name=name)
        self.work = work
        self.source = source
        self.target = target
        self.processed = 0

    def run(self):
        while (item := self.source.get()) is not END:
            for result in self.work(item):
                self.target.put(result)
            self.processed += 1
        self.target.put(END)


class Batch:
    def __init__(self, number, values):
        self.number = number
        self.values = values
        self.history = []

    def note(self, text):
        self.history.append(f"{self.number}: {text}")


def smooth(batch):
    values = batch.values
    batch.values = [
        (values[max(index - 1, 0)] + 2 * value + values[min(index + 1, len(values) - 1)]) // 4
        for index, value in enumerate(values)
    ]
    batch.note("smoothed")
    yield batch


def split(batch):
    middle = len(batch.values) // 2
    for part, values in enumerate((batch.values[:middle], batch.values[middle:])):
        half = Batch(batch.number * 2 + part, values)
        half.history = list(batch.history)
        half.note(f"half {part}")
        yield half


def summarize(batch):
    checksum, peak = 0, batch.values[0]
    for value in batch.values:
        checksum = (checksum * 33 + value) % 65_521
        if value > peak:
            peak = value
    batch.note("summarized")
    yield batch.number, checksum, peak, len(batch.history)


def produce(count, target):
    for number in range(count):
        target.put(Batch(number, [(number * 7919 + index * index) % 4096 for index in range(200)]))
    target.put(END)


def main():
    queues = [queue.Queue(maxsize=16) for _ in range(4)]
    works = [("smooth", smooth), ("split", split), ("summarize", summarize)]
    stages = [
        Stage(name, work, queues[index], queues[index + 1]) for index, (name, work) in enumerate(works)
    ]
    producer = threading.Thread(target=produce, args=(1_500, queues[0]), name="producer")
    for thread in (producer, *stages):
        thread.start()
    total, notes = 0, 0
    while (result := queues[-1].get()) is not END:
        number, checksum, peak, history = result
        total = (total + number * checksum + peak) % 1_000_000_007
        notes += history
    for thread in (producer, *stages):
        thread.join()
    print("checksum", total, notes, [stage.processed for stage in stages])


if __name__ == "__main__":
    main()
