"""`results/<label>/`: reading, writing and finding runs."""

from gilscope.toolkit.store.header import header, read_header, read_json
from gilscope.toolkit.store.keeping import Store, file_path, load_run
from gilscope.toolkit.store.labels import RESULTS, default_label, find_label, find_runs, label_path, labels
from gilscope.toolkit.store.listing import Listed, list_runs

__all__ = [
    "RESULTS", "Listed", "Store", "default_label", "file_path", "find_label", "find_runs", "header", "label_path",
    "labels", "list_runs", "load_run", "read_header", "read_json",
]
