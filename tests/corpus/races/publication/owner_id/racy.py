# EXPECT: unsynchronised read/write or check-then-act | Section.owner | 18, 24
"""The owner of a section, compared by a thread with another one than itself."""

import threading


class Section:
    def __init__(self):
        self.lock = threading.Lock()
        self.owner = None

    def work(self):
        with self.lock:
            self.enter()

    def enter(self):
        # needs the lock
        self.owner = threading.get_ident()

    def is_with(self, thread):
        return self.asked(thread.ident)

    def asked(self, ident):
        return self.owner == ident


section = Section()
threads = [threading.Thread(target=section.work) for _ in range(2)]
asking = threading.Thread(target=section.is_with, args=(threads[0],))
for thread in (*threads, asking):
    thread.start()
for thread in (*threads, asking):
    thread.join()
print(section.owner is not None)
