"""One comment on the pull request for each mode, folder and name: made once, then kept up to date.

Source: GitHub Docs, "REST API endpoints for issue comments".
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inputs import event, given, read_inputs
from outcome import CLEAN
from runner_files import limited

from gilscope.toolkit.escaping import in_command, message

PAGE = 100             # comments; the most that one answer has
MOST_BODY = 60_000     # bytes; GitHub takes 65,536 characters
TIMEOUT = 30.0         # seconds for one answer
REFUSED = (401, 403, 404)   # what a token without the permission gets
REASON = (": the token may not write comments, as in every pull request from a fork; elsewhere the job needs "
          "`permissions: pull-requests: write`")


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestComments:
    """The comments of one pull request."""

    api: str       # the address of the API
    repository: str
    number: int
    token: str

    def find(self, marker: str) -> int | None:
        """Return the ID of the first comment that begins with the marker, a bot's before a person's, or None."""
        found = []
        page = 1
        while True:
            comments = self._ask("GET", f"issues/{self.number}/comments?per_page={PAGE}&page={page}")
            # Who quotes the comment has the marker, too, but not at the beginning.
            found += [each for each in comments if str(each.get("body") or "").startswith(marker)]
            if len(comments) < PAGE:
                break
            page += 1
        found.sort(key=lambda each: (each.get("user") or {}).get("type") != "Bot")
        return int(found[0]["id"]) if found else None

    def create(self, body: str) -> None:
        """Add a comment."""
        self._ask("POST", f"issues/{self.number}/comments", {"body": body})

    def update(self, ident: int, body: str) -> None:
        """Replace the text of a comment."""
        self._ask("PATCH", f"issues/comments/{ident}", {"body": body})

    def _ask(self, method: str, path: str, values: dict[str, str] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.api}/repos/{self.repository}/{path}", method=method,
            data=None if values is None else json.dumps(values).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Accept": "application/vnd.github+json",
                     "Content-Type": "application/json", "User-Agent": "gilscope",
                     "X-GitHub-Api-Version": "2022-11-28"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return json.loads(answer.read())


def comment() -> int:
    """Write or update the comment; a comment that cannot be written is said, and fails nothing: return 0."""
    inputs = read_inputs()
    folder = Path(os.environ["FOLDER"])
    number = (event().get("pull_request") or {}).get("number")
    if not isinstance(number, int):
        print("This event is no pull request: there is nothing to comment on.")
        return 0
    comments = PullRequestComments(
        api=os.environ["GITHUB_API_URL"], repository=os.environ["GITHUB_REPOSITORY"], number=number,
        token=given("token"))
    marker = marker_of(inputs.mode, inputs.place, inputs.name)
    outcome = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    try:
        print(keep(comments, marker, _body(marker, Path(outcome["summary"]).read_text(encoding="utf-8")),
                   wanted=outcome["result"] != CLEAN or inputs.mode == "compare"))
    except urllib.error.HTTPError as error:
        _warn(f"no comment was written, the answer was {error.code} {error.reason}{REASON * (error.code in REFUSED)}")
    except (OSError, ValueError) as error:
        _warn(f"no comment was written: {error}")
    return 0


def marker_of(mode: str, place: str, name: str) -> str:
    """Return the line, hidden in Markdown, by which the comment is found again."""
    digest = hashlib.sha256(f"{mode}\0{place}\0{name}".encode()).hexdigest()[:16]   # no text of others in it
    return f"<!-- gilscope {mode} {digest} -->"


def keep(comments: PullRequestComments, marker: str, body: str, *, wanted: bool) -> str:
    """Update the comment if there is one, or make it if it is wanted; return what was done."""
    ident = comments.find(marker)
    if ident is not None:
        comments.update(ident, body)
        return f"The comment {ident} was updated."
    if not wanted:
        return "Nothing was found, and there is no comment that says otherwise: none is written."
    comments.create(body)
    return "A comment was written."


def _body(marker: str, summary: str) -> str:
    server, repository, ident = (os.environ.get(name, "") for name in (
        "GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"))
    head = ((event().get("pull_request") or {}).get("head") or {}).get("sha", "")
    link = f"\n<sub>{head} · [run]({server}/{repository}/actions/runs/{ident})</sub>\n"
    return f"{marker}\n{limited(summary, MOST_BODY)}{link}"


def _warn(text: str) -> None:
    print(f"::warning title=gilscope::{in_command(message(text))}")
