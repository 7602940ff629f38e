# EXPECT: lost update | *lives* | 12, 18
import threading


class Hero:
    def __init__(self):
        self.lives = 3


def by_name(hero, field, step):
    for _ in range(5):
        setattr(hero, field, getattr(hero, field) + step)


def by_dict(hero, field, step):
    values = vars(hero)
    for _ in range(5):
        values[field] = values[field] + step


hero = Hero()
a = threading.Thread(target=by_name, args=(hero, "lives", 1))
b = threading.Thread(target=by_dict, args=(hero, "lives", 2))
a.start()
b.start()
for t in (a, b):
    t.join()
print(hero.lives > 3)
