"""Sinks that are added and removed while other threads log."""

from in_threads import in_threads
from loguru import logger

logger.remove()


def work(thread, turn):
    if thread == 0:
        number = logger.add(lambda message: None)
        logger.disable("elsewhere")
        logger.remove(number)
    else:
        logger.info("message {}", turn)


in_threads(work)
