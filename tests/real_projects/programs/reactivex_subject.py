"""Observers that subscribe and dispose while others send values."""

from in_threads import in_threads
from reactivex.subject import ReplaySubject, Subject

subjects = Subject(), ReplaySubject(buffer_size=4)


def work(thread, turn):
    for subject in subjects:
        subscription = subject.subscribe(lambda value: None)
        subject.on_next((thread, turn))
        subscription.dispose()


in_threads(work)
