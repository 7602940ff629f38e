"""Finds filters in plugins/ and passes each message through them."""
import importlib.machinery
import importlib.util
from pathlib import Path

FOLDER = Path(__file__).parent / "plugins"


def load(path):
    loader = importlib.machinery.SourceFileLoader(path.stem, str(path))
    spec = importlib.util.spec_from_loader(path.stem, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


FILTERS = [load(path) for path in sorted(FOLDER.glob("*.plug"))]


def send(message):
    for plugin in FILTERS:
        message = plugin.handle(message)
    return message
