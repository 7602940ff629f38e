"""What was asked, as plain values in run.json and back, so that a run can go on as it began."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.measure.plan.cells import Selection
from gilscope.toolkit.measure.plan.settings import Settings
from gilscope.toolkit.measure.process.spec import UserTarget
from gilscope.toolkit.model import Phase
from gilscope.toolkit.store.checking import typed

Units = dict[tuple[str, float], tuple[int, int]]  # (workload, task seconds) -> (units per task, tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything a run needs to be told beside its builds and cells."""

    selection: Selection
    settings: Settings
    units: Units
    paths: tuple[str, ...]  # folders of the user's modules
    packages: tuple[str, ...]  # requirements the user named
    code: str = ""  # sum of the user's modules that were named, see `find_module.code_sum`; "": not known
    shared_by: int = 1  # workers of the widest cell: the workloads have a task for each of them

    def to_options(self) -> dict[str, Any]:
        """Return the form that JSON holds."""
        fields = asdict(self)
        fields["units"] = [[*key, *value] for key, value in self.units.items()]
        return fields

    @classmethod
    def from_options(cls, fields: dict[str, Any]) -> Request:
        """Return the request `to_options` was made from.

        Raises:
            BadFileError: a field is missing or unknown.
        """
        try:
            typed(Settings, fields["settings"], "options.settings")
            selection: dict[str, Any] = dict(typed(Selection, fields["selection"], "options.selection"))
            user = selection.pop("user")
            lists: dict[str, Any] = {
                name: tuple(selection.pop(name)) for name in ("workloads", "models", "workers", "task_seconds")
            }
            phases = tuple(Phase(each) for each in selection.pop("phases"))
            return cls(
                selection=Selection(user=_user(user) if user else None, phases=phases, **lists, **selection),
                settings=Settings(**fields["settings"]),
                units={(name, seconds): (units, tasks) for name, seconds, units, tasks in fields["units"]},
                paths=tuple(fields["paths"]),
                packages=tuple(fields["packages"]),
                code=str(fields.get("code", "")),
                shared_by=fields.get("shared_by", 1),  # as it was before there were more tasks for more workers
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadFileError(f"run.json does not say how the run was made, so it cannot go on ({error})") from error


def _user(fields: Any) -> UserTarget:
    return UserTarget(**typed(UserTarget, fields, "options.selection.user"))
