"""What a run was asked for, as run.json keeps it."""

import json

from gilscope.toolkit.measure.cells import Selection
from gilscope.toolkit.measure.child.spec import UserTarget
from gilscope.toolkit.measure.settings import RunRequest, Settings
from gilscope.toolkit.model import Phase

ASKED = RunRequest(
    selection=Selection(workloads=(), user=UserTarget(function="m:f", payload="1", tasks=32, kind="io"),
                        models=("serial", "threads"), workers=(1, 32), phases=(Phase.STEADY,), size="small"),
    settings=Settings(rounds=6, values=2, warmups=0, min_seconds=0.02, timeout=60.0),
    units={("countdown", 0.01): (400, 40)}, paths=("/here",), packages=(), shared_by=32,
)


def test_request_comes_back_from_json():
    assert RunRequest.from_options(json.loads(json.dumps(ASKED.to_options()))) == ASKED


def test_run_begun_before_tasks_followed_the_workers_goes_on_with_the_tasks_it_had():
    kept = ASKED.to_options()
    del kept["shared_by"]
    del kept["selection"]["user"]["kind"]
    found = RunRequest.from_options(kept)
    assert found.shared_by == 1
    assert found.selection.user.kind is None
