# EXPECT: lost update | global squared in racy.py | 12, 12
"""Threads share a global; processes have one each and send what they found."""

import threading

squared = 0


def work(numbers):
    global squared
    for number in numbers:
        squared += number * number


def main():
    workers = [threading.Thread(target=work, args=(part,)) for part in ([1, 2], [3, 4])]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("squared", squared > 0)


if __name__ == "__main__":
    main()
