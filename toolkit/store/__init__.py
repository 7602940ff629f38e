"""`results/<label>/`: reading, writing and finding runs."""

from gilscope.toolkit.store.fleet import (
    Fleet,
    FleetStore,
    Host,
    HostState,
    fleet_text,
    host_name,
    is_fleet,
    machine_marks,
    on_one_machine,
    read_fleet,
    with_machines,
)
from gilscope.toolkit.store.header import header, read_header, read_json
from gilscope.toolkit.store.keeping import Store, file_path, load_run
from gilscope.toolkit.store.labels import RESULTS, default_label, find_fleet, label_path, labels
from gilscope.toolkit.store.listing import RunListing, find_label, find_runs, list_runs

__all__ = [
    "RESULTS", "Fleet", "FleetStore", "Host", "HostState", "RunListing", "Store", "default_label", "file_path",
    "find_fleet", "find_label", "find_runs", "fleet_text", "header", "host_name", "is_fleet", "label_path", "labels",
    "list_runs", "load_run", "machine_marks", "on_one_machine", "read_fleet", "read_header", "read_json",
    "with_machines",
]
