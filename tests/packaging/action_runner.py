"""Run the steps of action.yml as a runner of GitHub does, beside a local fake of GitHub's API."""

import json
import os
import re
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

TOKEN = "token-of-the-test"
REPOSITORY = "somebody/shop"
HEAD = "0123456789abcdef0123456789abcdef01234567"
EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")
OUTPUT = re.compile(r"^([\w-]+)<<(\S+)\n(.*?)\n?\2\n", re.MULTILINE | re.DOTALL)


@dataclass
class FakeComments:
    """What the API has and was asked; `refuse` is the status that it answers writing with, 0 for none."""

    comments: list = field(default_factory=list)
    asked: list = field(default_factory=list)    # of (method, path)
    refuse: int = 0
    address: str = ""

    def add(self, body, kind="User"):
        comment = {"id": 1000 + len(self.comments), "body": body, "user": {"type": kind}}
        self.comments.append(comment)
        return comment

    @property
    def writes(self):
        return [each for each in self.asked if each[0] != "GET"]

    def answer(self, method, target, token, values):
        """Return the status and the content."""
        path = urlsplit(target)
        self.asked.append((method, path.path))
        if token != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}
        listed, one = f"/repos/{REPOSITORY}/issues/7/comments", f"/repos/{REPOSITORY}/issues/comments/"
        if method == "GET" and path.path == listed:
            query = parse_qs(path.query)
            size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
            return 200, self.comments[size * (page - 1):size * page]
        if self.refuse:
            return self.refuse, {"message": "Resource not accessible by integration"}
        if method == "POST" and path.path == listed:
            return 201, self.add(values["body"], "Bot")
        found = [each for each in self.comments if path.path == f"{one}{each['id']}"]
        if method == "PATCH" and found:
            found[0]["body"] = values["body"]
            return 200, found[0]
        return 404, {"message": "Not Found"}


@contextmanager
def fake_api():
    """Yield a fake of the API that listens on the loopback address."""
    fake = FakeComments()

    class Handler(BaseHTTPRequestHandler):
        def do(self):
            size = int(self.headers.get("Content-Length") or 0)
            values = json.loads(self.rfile.read(size)) if size else None
            status, content = fake.answer(self.command, self.path, self.headers.get("Authorization"), values)
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True, kw_only=True)
class ActionRun:
    """How a run of the action ended."""

    status: int        # of the first step that failed
    log: str
    summary: str
    outputs: dict      # of the action
    ran: list          # names of the steps that ran
    steps: dict        # {ID of a step: its outputs}

    def commands(self, level):
        """Return the annotations of a level, each as its properties and its message."""
        return re.findall(rf"^::{level} (.*?)::(.*)$", self.log, re.MULTILINE)


@dataclass(kw_only=True)
class ActionRunner:
    """A runner with a Python on PATH.

    Attributes:
        action: The content of action.yml.
        python: The folder with `python`.
        temporary: The folder for all files of the runner.
        left_out: Names of steps that are not run.
        variables: More of the environment.
        event: What started the workflow.
    """

    action: dict
    python: object
    temporary: object
    left_out: tuple = ("install",)
    variables: dict = field(default_factory=dict)
    event: dict = field(default_factory=dict)
    api: str = "http://127.0.0.1:9"    # the discard port: nobody listens
    runs: int = 0

    def run(self, workspace, **inputs):
        """Run all steps on a checkout; "_" in the name of an input is "-"."""
        inputs = {name.replace("_", "-"): value for name, value in inputs.items()}
        declared = self.action["inputs"]
        assert set(inputs) <= set(declared)
        assert {name for name, each in declared.items() if each.get("required")} <= set(inputs)
        self.runs += 1
        folder = self.temporary / f"run-{self.runs}"
        folder.mkdir(parents=True)
        (folder / "event.json").write_text(json.dumps(self.event))
        context = {"github": {"token": TOKEN}, "steps": {}, "inputs": {}}
        for name, each in declared.items():
            context["inputs"][name] = inputs.get(name, filled(str(each.get("default", "")), context))
        log, ran, status = "", [], 0
        for number, step in enumerate(self.action["runs"]["steps"]):
            if not holds(step.get("if", ""), context) or step["name"] in self.left_out or status:
                continue
            ran.append(step["name"])
            if "uses" in step:
                context.setdefault("uses", {})[step["name"]] = {
                    name: filled(str(value), context) for name, value in step["with"].items()}
                continue
            assert step["shell"] == "bash"
            assert "${{" not in step["run"], "values of expressions belong into env"
            done, outputs = self._step(step, number, folder, workspace, context)
            log += done.stdout
            status = done.returncode
            if "id" in step:
                context["steps"][step["id"]] = outputs
        summary = folder / "summary.md"
        outputs = {name: filled(each["value"], context) for name, each in self.action["outputs"].items()}
        print(log)    # shown when the test fails
        return ActionRun(status=status, log=log, outputs=outputs, ran=ran, steps=context["steps"] | {
            "uses": context.get("uses", {})}, summary=summary.read_text() if summary.exists() else "")

    def _step(self, step, number, folder, workspace, context):
        script, output = folder / f"{number}.sh", folder / f"{number}.output"
        script.write_text(step["run"])
        output.touch()
        ours = ("PYTHON", "GILSCOPE_", "GITHUB_", "INPUT_", "PYTEST_", "COV_", "VIRTUAL_ENV")
        kept = {"GILSCOPE_CACHE", "GILSCOPE_MACHINE"}   # of this process alone
        environment = {name: value for name, value in os.environ.items()
                       if name in kept or not name.startswith(ours)}
        environment |= {
            "PATH": f"{self.python}{os.pathsep}{os.environ['PATH']}", "CI": "true", "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_WORKSPACE": str(workspace), "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_API_URL": self.api, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_RUN_ID": "42",
            "GITHUB_SERVER_URL": "http://server.test", "RUNNER_TEMP": str(folder), "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "X64", "PYTHONPYCACHEPREFIX": "", **self.variables}
        environment |= {name: filled(value, context) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script], cwd=workspace, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
        return done, {name: value for name, _, value in OUTPUT.findall(output.read_text())}


def looked_up(path, context):
    """Return the value of `inputs.mode` or `steps.check.outputs.status`; "" if it is not set, as a runner does."""
    parts = [part for part in path.split(".") if part != "outputs"]
    value = context
    for part in parts:
        value = value.get(part, "") if isinstance(value, dict) else ""
    return value


def filled(text, context):
    """Return a text with the values of its expressions."""
    return EXPRESSION.sub(lambda found: str(looked_up(found[1], context)), text)


def holds(condition, context):
    """Return True if a step runs: its condition compares a value with a text."""
    if not condition:
        return True
    path, operator, text = re.fullmatch(r"\$\{\{ ([\w.-]+) (==|!=) '(.*)' \}\}", condition).groups()
    return (looked_up(path, context) == text) is (operator == "==")
