"""A cached resolve of modern-di (modern-python/modern-di#435)."""

from modern_di import Container, Group, Scope, providers


class Settings:
    pass


class Dependencies(Group):
    settings = providers.Factory(scope=Scope.APP, creator=Settings, cache=True)


CONTAINER = Container(groups=[Dependencies])


def resolve():
    return CONTAINER.resolve(Settings)
