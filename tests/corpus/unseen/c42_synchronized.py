# EXPECT: clean
import functools
import threading


def synchronized(method):
    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        with self._monitor:
            return method(self, *args, **kwargs)

    return wrapper


class Stack:
    def __init__(self):
        self._monitor = threading.RLock()
        self._items = []
        self.pushed = 0

    @synchronized
    def push(self, item):
        self._items.append(item)
        self.pushed += 1

    @synchronized
    def pop_pair(self):
        if len(self._items) >= 2:
            return self._items.pop(), self._items.pop()

    @synchronized
    def push_pair(self, a, b):
        self.push(a)
        self.push(b)


def work(stack):
    for n in range(5):
        stack.push_pair(n, -n)
        stack.pop_pair()


stack = Stack()
threads = [threading.Thread(target=work, args=(stack,)) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(stack.pushed, stack.pop_pair())
