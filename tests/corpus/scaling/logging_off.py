"""Every thread logs to one logger at a level that is switched off.

Repair: ask once whether the level is on, or a logger for each thread.
"""

import logging

LOG = logging.getLogger("planted")


def f():
    for number in range(50):
        LOG.debug("number %d", number)
