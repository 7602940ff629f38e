# EXPECT: check-then-act or lost update | RotatingLog.size | 15, 19, 21
# EXPECT: lost update | RotatingLog.generation | 16
"""Log which starts a new generation when it has grown too big."""
import threading


class RotatingLog:
    def __init__(self, limit):
        self.limit = limit
        self.size = 0
        self.generation = 1
        self.records = []

    def rotate(self):
        self.size = 0
        self.generation += 1

    def write(self, text):
        if self.size + len(text) > self.limit:
            self.rotate()
        self.size += len(text)
        self.records.append(text)


class Component:
    def __init__(self, name, log):
        self.name = name
        self.log = log

    def work(self):
        self.log.write(self.name + " starts")
        self.log.write(self.name + " dumps " + "#" * 200)
        self.log.write(self.name + " stops")


def main():
    log = RotatingLog(limit=100)
    components = [Component("db", log), Component("web", log)]
    threads = [threading.Thread(target=c.work, name=c.name) for c in components]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(len(log.records))
    for name in ("db", "web"):
        print([r.split()[1] for r in log.records if r.startswith(name)])


main()
