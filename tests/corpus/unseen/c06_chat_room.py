# EXPECT: clean
"""Chat room: broadcast goes over a frozen copy of the members."""
import threading
from collections import deque


class Member:
    def __init__(self, nick):
        self.nick = nick
        self.inbox = deque()

    def deliver(self, text):
        self.inbox.append(text)


class Room:
    def __init__(self):
        self._lock = threading.Lock()
        self._members = ()

    def enter(self, member):
        with self._lock:
            self._members = self._members + (member,)

    def leave(self, member):
        with self._lock:
            self._members = tuple(m for m in self._members if m is not member)

    def members(self):
        with self._lock:
            return self._members

    def broadcast(self, text):
        for member in self.members():
            member.deliver(text)


def visitors(room, prefix):
    for n in range(10):
        member = Member("%s%d" % (prefix, n))
        room.enter(member)
        if n % 2:
            room.leave(member)


def announcer(room):
    for n in range(10):
        room.broadcast("news %d" % n)


def main():
    room = Room()
    bot = Member("bot")
    room.enter(bot)
    threads = [
        threading.Thread(target=visitors, args=(room, "a")),
        threading.Thread(target=visitors, args=(room, "b")),
        threading.Thread(target=announcer, args=(room,)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(sorted(m.nick for m in room.members()))
    print(list(bot.inbox)[-1], len(bot.inbox))


main()
