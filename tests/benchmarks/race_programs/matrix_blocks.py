"""Blocked matrix multiplication: each thread owns a band of rows of the result, phases meet at a barrier."""

import threading

SIZE, BLOCK, THREADS, ROUNDS = 56, 14, 4, 6
MODULUS = 10_007


class Matrix:
    def __init__(self, size, value=lambda row, column: 0):
        self.size = size
        self.rows = [[value(row, column) for column in range(size)] for row in range(size)]

    def checksum(self):
        total = 0
        for row in self.rows:
            for value in row:
                total = (total * 31 + value) % 1_000_000_007
        return total


def multiply_block(left, right, result, top, start):
    """Add the product of one block pair to the rows from `top` on."""
    for row in range(top, min(top + BLOCK, left.size)):
        source, target = left.rows[row], result.rows[row]
        for inner in range(start, min(start + BLOCK, right.size)):
            factor, other = source[inner], right.rows[inner]
            for column in range(right.size):
                target[column] = (target[column] + factor * other[column]) % MODULUS


class Worker(threading.Thread):
    def __init__(self, job, number):
        super().__init__(name=f"band-{number}")
        self.job = job
        self.number = number
        self.blocks = 0

    def run(self):
        job = self.job
        for _ in range(ROUNDS):
            for top in range(self.number * BLOCK, SIZE, THREADS * BLOCK):
                for start in range(0, SIZE, BLOCK):
                    multiply_block(job.left, job.right, job.result, top, start)
                    self.blocks += 1
            job.computed.wait()


class Job:
    """left becomes left x right, ROUNDS times; the barrier's action swaps in a fresh result."""

    def __init__(self):
        self.left = Matrix(SIZE, lambda row, column: (row * 17 + column * 5) % MODULUS)
        self.right = Matrix(SIZE, lambda row, column: (row + column) % 7)
        self.result = Matrix(SIZE)
        self.checksums = []
        self.computed = threading.Barrier(THREADS, action=self.next_round)

    def next_round(self):
        self.checksums.append(self.result.checksum())
        self.left, self.result = self.result, Matrix(SIZE)


def main():
    job = Job()
    workers = [Worker(job, number) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("checksum", job.checksums, sum(worker.blocks for worker in workers))


if __name__ == "__main__":
    main()
