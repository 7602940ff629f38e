"""The folders of runs: reading, writing and finding them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.store.fleet import (
    Fleet,
    FleetStore,
    Host,
    HostState,
    fleet_text,
    host_name,
    is_fleet,
    machines_of,
    read_fleet,
    with_machines,
)
from gilscope.toolkit.store.header import header, read_header, read_json
from gilscope.toolkit.store.labels import (
    default_label,
    find_fleet,
    label_path,
    labels,
    make_folder,
    results_folder,
    results_folders,
)
from gilscope.toolkit.store.listing import RunListing, find_label, find_runs, list_runs
from gilscope.toolkit.store.reading import file_path, load_run

if TYPE_CHECKING:
    from gilscope.toolkit.store.keeping import Store

__all__ = [
    "Fleet", "FleetStore", "Host", "HostState", "RunListing", "Store", "default_label", "file_path", "find_fleet",
    "find_label", "find_runs", "fleet_text", "header", "host_name", "is_fleet", "label_path", "labels", "list_runs",
    "load_run", "machines_of", "make_folder", "read_fleet", "read_header", "read_json", "results_folder",
    "results_folders", "with_machines",
]


def __getattr__(name: str) -> object:
    # Only what writes runs needs pyperf, whose import takes longer than reading a run.
    if name == "Store":
        from gilscope.toolkit.store.keeping import Store  # noqa: PLC0415

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
