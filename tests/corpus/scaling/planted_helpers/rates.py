"""A function with a decorator, for `decorated_function`."""

import functools


def traced(function):
    @functools.wraps(function)
    def call(amount):
        return function(amount)

    return call


@traced
def scale(amount):
    return amount * 2
