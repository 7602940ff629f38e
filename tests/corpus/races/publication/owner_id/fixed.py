# EXPECT: clean
# EXPECT-NOTE: no other thread stores this thread | Section.owner | 16, 20, 24
"""The owner of a section, compared only with the thread itself."""

import threading


class Section:
    def __init__(self):
        self.lock = threading.Lock()
        self.owner = None

    def work(self):
        with self.lock:
            self.enter()
            self.owner = None

    def enter(self):
        # needs the lock
        self.owner = threading.get_ident()

    def is_mine(self):
        me = threading.get_ident()
        return self.owner == me


section = Section()
threads = [threading.Thread(target=section.work) for _ in range(2)]
asking = threading.Thread(target=section.is_mine)
for thread in (*threads, asking):
    thread.start()
for thread in (*threads, asking):
    thread.join()
print(section.owner)
