from ._count import bump, value
