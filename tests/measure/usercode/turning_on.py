"""A user's functions that import an extension which turns the GIL on, one of them after a lot of output."""


def use_extension(_):
    import gilful

    return gilful.answer()


def use_extension_late(_):
    print("x" * 2**21, flush=True)
    return use_extension(_)


def do_nothing(_):
    pass
