"""The stock of a shop, in SQLite, with one connection for all."""
import sqlite3

db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
db.execute("create table stock (item text primary key, left integer)")
db.executemany("insert into stock values (?, ?)", [(f"item{n}", 100_000_000) for n in range(5)])


def left(item):
    return db.execute("select left from stock where item = ?", (item,)).fetchone()[0]


def take(item, count):
    now = left(item)
    if now < count:
        return False
    db.execute("update stock set left = ? where item = ?", (now - count, item))
    return True
