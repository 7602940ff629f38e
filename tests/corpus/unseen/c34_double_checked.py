# EXPECT: clean
import threading


class Engine:
    def __init__(self):
        self.rules = {n: n * n for n in range(5)}

    def ask(self, n):
        return self.rules.get(n)


class Holder:
    _engine = None
    _lock = threading.Lock()
    built = []

    @classmethod
    def engine(cls):
        if cls._engine is None:
            with cls._lock:
                if cls._engine is None:
                    cls.built.append("engine")
                    cls._engine = Engine()
        return cls._engine


def ask(n, answers):
    answers[n] = Holder.engine().ask(n)


answers = {}
threads = [threading.Thread(target=ask, args=(n, answers)) for n in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(answers.items()), Holder.built)
