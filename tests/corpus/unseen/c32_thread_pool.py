# EXPECT: clean
import queue
import threading


class Task:
    def __init__(self, function, *args):
        self.function = function
        self.args = args
        self.done = threading.Event()
        self.result = None

    def run(self):
        self.result = self.function(*self.args)
        self.done.set()

    def get(self):
        self.done.wait()
        return self.result


class Pool:
    def __init__(self, size):
        self.tasks = queue.Queue()
        self.threads = [threading.Thread(target=self.work) for _ in range(size)]
        for t in self.threads:
            t.start()

    def work(self):
        while (task := self.tasks.get()) is not None:
            task.run()

    def submit(self, function, *args):
        task = Task(function, *args)
        self.tasks.put(task)
        return task

    def close(self):
        for _ in self.threads:
            self.tasks.put(None)
        for t in self.threads:
            t.join()


pool = Pool(3)
tasks = [pool.submit(pow, 2, n) for n in range(8)]
print([task.get() for task in tasks])
pool.close()
