# EXPECT: clean
"""Threads share a global; processes have one each and send what they found."""

import multiprocessing

squared = 0


def work(numbers, pipe):
    global squared
    for number in numbers:
        squared += number * number
    pipe.send(squared)


def main():
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    workers = [context.Process(target=work, args=(part, sender)) for part in ([1, 2], [3, 4])]
    for worker in workers:
        worker.start()
    total = sum(receiver.recv() for _ in workers)
    for worker in workers:
        worker.join()
    print("squared", total, squared)


if __name__ == "__main__":
    main()
