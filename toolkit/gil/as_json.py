"""A diagnosis as the JSON document of `gilscope gil`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from gilscope.toolkit.gil.answer import answer_lines

if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.gil.diagnosis import Diagnosis

SCHEMA = "gilscope/gil/2"


def values(found: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as a JSON document; its schema is `report/schemas/gil.json`."""
    summary = found.summary
    shares = {"share": summary.share, "wanted_share": summary.wanted_share, "blocked_share": summary.blocked_share,
              "overhead_share": summary.overhead_share}
    own = asdict(found)
    del own["summary"]
    own["last_seen"] = [{**each, "kind": each["kind"].name.lower()} for each in own["last_seen"]]
    return {"schema": SCHEMA, "answer": list(answer_lines(found)), **own, **shares, **asdict(summary)}
