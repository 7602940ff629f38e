# EXPECT: clean
"""Log lines are collected and now and then flushed."""

import threading


class LogBuffer:
    def __init__(self):
        self.lines = []
        self.written = []
        self.lock = threading.Lock()

    def write(self, line):
        with self.lock:
            self.lines.append(line)

    def flush(self):
        with self.lock:
            lines, self.lines = self.lines, []
        self.written.extend(lines)


log = LogBuffer()


def work(name):
    for step in range(3):
        log.write(f"{name} {step}")
    log.flush()


workers = [threading.Thread(target=work, args=(name,)) for name in ("indexer", "mailer")]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
log.flush()
print("logged", len(log.written) > 0)
