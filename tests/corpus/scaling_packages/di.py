"""A cached resolve of modern-di (modern-python/modern-di#435), and what its thread compares it with."""

import threading

from modern_di import Container, Group, Scope, providers


class Settings:
    pass


class Dependencies(Group):
    settings = providers.Factory(scope=Scope.APP, creator=Settings, cache=True)


CONTAINER = Container(groups=[Dependencies])
OWN = threading.local()


def resolve():
    return CONTAINER.resolve(Settings)


def resolve_20():
    container = CONTAINER
    for _ in range(20):
        container.resolve(Settings)


def resolve_20_from_own_container():
    """A container for each thread, of the same providers."""
    container = getattr(OWN, "container", None)
    if container is None:
        container = OWN.container = Container(groups=[Dependencies])
    for _ in range(20):
        container.resolve(Settings)


def resolve_20_from_own_providers():
    """Providers and a container for each thread."""
    container = getattr(OWN, "container", None)
    if container is None:
        class OwnDependencies(Group):
            settings = providers.Factory(scope=Scope.APP, creator=Settings, cache=True)

        container = OWN.container = Container(groups=[OwnDependencies])
    for _ in range(20):
        container.resolve(Settings)
