"""action.yml: each mode's steps run as a runner runs them, on a project with a finding and on one without."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.packages.distributions import site_folders
from tests.actionlint import actionlint
from tests.conformance.builds import ROOT, found
from tests.evaluate.places import library, newest_pair
from tests.evaluate.planted_wheels import WheelKit, good, turns_on
from tests.gil_guard.guarded import add_distribution, link_packages, make_environment
from tests.packaging.action_runner import HEAD, ActionRunner, fake_api

FILE = ROOT / "action.yml"
pytestmark = [pytest.mark.newest, pytest.mark.skipif(not FILE.exists(), reason="a source distribution has no action")]
# What gilscope's commands need beside what `make_environment` links.
NEEDED = ("pip", "pyperf", "rich", "shtab", "markdown-it-py", "mdurl")
PULL_REQUEST = {"pull_request": {"number": 7, "head": {"sha": HEAD}}}

CLICKS = """import threading

clicks = 0
lock = threading.Lock()

def click():
    global clicks
    {guard}:
        clicks += 1

threads = [threading.Thread(target=click) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
RACY, LOCKED = CLICKS.format(guard="if lock"), CLICKS.format(guard="with lock")


@pytest.fixture(scope="session")
def action():
    yaml = pytest.importorskip("yaml", reason="pyyaml reads action.yml")
    return yaml.safe_load(FILE.read_text())


def with_gilscope(build, folder):
    """Return the folder with `python` of an environment that has this checkout and pytest."""
    python = make_environment(build, folder)
    (site,) = site_folders(folder)
    link_packages(site, NEEDED)
    return python.parent


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """Return the folder with `python` of this Python with gilscope."""
    here = next(each for each in found() if each.minor == "{}.{}".format(*sys.version_info)
                and not each.free_threaded)
    return with_gilscope(here, tmp_path_factory.mktemp("action") / "environment")


@pytest.fixture
def runner(action, environment, tmp_path):
    return ActionRunner(action=action, python=environment, temporary=tmp_path / "runner")


def project(folder, files):
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


# action.yml itself

def test_expressions_are_in_no_command_and_only_one_step_has_the_token(action):
    steps = action["runs"]["steps"]
    assert all("${{" not in step["run"] for step in steps if "run" in step)
    assert [step["name"] for step in steps if "token" in json.dumps(step.get("env", {}))] == ["comment"]


def test_other_actions_are_pinned(action):
    uses = [step["uses"] for step in action["runs"]["steps"] if "uses" in step]
    assert len(uses) == 3
    assert all(re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", each) for each in uses)


def test_inputs_that_a_step_reads_are_declared_and_given(action):
    given = {name: text for step in action["runs"]["steps"] for name, text in step.get("env", {}).items()
             if name.startswith("INPUT_")}
    for name, text in given.items():
        assert text == f"${{{{ inputs.{name.removeprefix('INPUT_').lower().replace('_', '-')} }}}}"
    used = {name.removeprefix("INPUT_").lower().replace("_", "-") for name in given} | {"python-version", "comment"}
    assert used == set(action["inputs"])


@pytest.fixture
def page():
    return (ROOT / "docs" / "ci.md").read_text()


@pytest.fixture
def example(page):
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return workflow


def test_manual_has_an_example_of_each_mode_and_every_input_and_output(action, page, example):
    modes = re.findall(r"^          mode: (\w+)$", example, re.MULTILINE)
    assert sorted(modes) == ["compare", "dist", "doctor", "guard", "race"]
    table = re.findall(r"^\| `([\w-]+)` \|", page.split("### Inputs")[1].split("\n## ")[0], re.MULTILINE)
    assert table == [*action["inputs"], *action["outputs"]]


@pytest.mark.slow
@pytest.mark.network   # the first time
def test_action_and_its_example_are_clean_for_actionlint(example, tmp_path):
    tool = actionlint()
    project(tmp_path, {"action.yml": FILE.read_text(),
                       ".github/workflows/example.yml": example.replace("OWNER/gilscope@main", "./")})
    git(tmp_path, "init", "--quiet")   # it reads the action of a repository's own
    done = subprocess.run([tool, "-no-color"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


# race

@pytest.mark.slow
def test_race_is_reported_everywhere_and_fails_the_job(runner, tmp_path):
    checkout = project(tmp_path / "shop", {"src/clicks.py": RACY, "src/pyproject.toml": ""})
    done = runner.run(checkout, mode="race", arguments="clicks.py", working_directory="src")
    assert (done.status, done.outputs["result"], done.outputs["findings"]) == (1, "findings", "1")
    ((properties, text),) = done.commands("error")
    assert "file=src/clicks.py,line=9" in properties
    assert "Repair: Hold one lock" in text
    assert "### ❌ gilscope race: 1 data race" in done.summary
    assert "at `src/clicks.py:9`" in done.summary
    report = json.loads(Path(done.outputs["report"]).read_text())
    assert report["races"][0]["kind"] == "lost update"
    (run,) = json.loads(Path(done.outputs["sarif"]).read_text())["runs"]
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "src/clicks.py"
    assert Path(done.outputs["summary"]).read_text() == done.summary


@pytest.mark.slow
def test_program_without_a_race_passes(runner, tmp_path):
    done = runner.run(project(tmp_path / "shop", {"clicks.py": LOCKED}), mode="race", arguments="clicks.py")
    assert (done.status, done.outputs["result"], done.outputs["findings"]) == (0, "clean", "0")
    assert done.commands("error") == []
    assert "gilscope race: no data race in what this run did" in done.summary
    assert json.loads(Path(done.outputs["sarif"]).read_text())["runs"][0]["results"] == []


@pytest.mark.slow
def test_race_fails_nothing_if_told_so(runner, tmp_path):
    checkout = project(tmp_path / "shop", {"clicks.py": RACY})
    done = runner.run(checkout, mode="race", arguments="clicks.py", fail_on="never")
    assert (done.status, done.outputs["result"]) == (0, "findings")


@pytest.mark.slow
def test_program_that_fails_without_a_race_fails_the_job(runner, tmp_path):
    checkout = project(tmp_path / "shop", {"ends.py": "raise SystemExit(5)\n"})
    done = runner.run(checkout, mode="race", arguments="ends.py", fail_on="never")
    assert (done.status, done.outputs["result"]) == (5, "failed")
    assert "ended with status 5, which is not a race" in done.summary


@pytest.mark.slow
def test_words_of_the_workflow_are_read_by_no_shell(runner, tmp_path):
    checkout = project(tmp_path / "shop", {"a b.py": "import sys; print('got', sys.argv[1:])\n"})
    done = runner.run(checkout, mode="race", arguments="""'a b.py' '$(touch made)' "; touch made" `touch made`""")
    assert done.status == 0
    assert "got ['$(touch made)', '; touch made', '`touch', 'made`']" in done.log
    assert not (checkout / "made").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("inputs", "words"), [
    ({"mode": "races"}, "mode is 'races': write one of race, guard, doctor, dist, compare"),
    ({"mode": "race", "fail_on": "always"}, "fail-on is 'always': write `findings`"),
    ({"mode": "race", "fail_on": "never,findings"}, "fail-on is 'never,findings': write"),
    ({"mode": "race", "working_directory": ".."}, "working-directory is '..': name a folder in the checkout"),
    ({"mode": "race", "working_directory": "absent"}, "there is no such folder; is the project checked out"),
    ({"mode": "race", "arguments": "'open"}, "arguments is \"'open\", which is not a command line"),
])
def test_inputs_without_a_meaning_are_refused_at_once(runner, tmp_path, inputs, words):
    done = runner.run(project(tmp_path / "shop", {"clicks.py": RACY}), **inputs)
    assert (done.status, done.ran) == (2, ["prepare"])
    assert words in done.commands("error")[0][1]


@pytest.mark.slow
def test_names_of_the_project_are_no_markup_and_no_commands(runner, tmp_path):
    checkout = project(tmp_path / "shop", {"clicks.py": """import threading

table = {}

def click(key="@everyone <img src=x> `|` %0A::error::no"):
    table[key] = table.get(key, 0) + 1

threads = [threading.Thread(target=click, name="::error::@me") for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""})
    done = runner.run(checkout, mode="race", arguments="clicks.py")
    assert done.outputs["result"] == "findings"
    assert not re.search(r"@(everyone|me)|(?<!\\)<img", done.summary)
    assert all(properties.startswith("title=") for properties, _ in done.commands("error"))
    assert not re.search("^::error::", done.log, re.MULTILINE)


@pytest.mark.slow
def test_cache_keys_change_with_what_is_kept_in_it(runner, tmp_path):
    checkout = project(tmp_path / "shop", {"clicks.py": LOCKED, "uv.lock": ""})
    keys = []
    for mode, arguments, lock in (("race", "clicks.py", ""), ("race", "clicks.py", ""), ("race", "clicks.py x", ""),
                                  ("doctor", "--lock=uv.lock", "a"), ("doctor", "--lock=uv.lock", "b")):
        (checkout / "uv.lock").write_text(lock)
        runner.left_out = ("install", "check", "fail if something was found")
        kept = runner.run(checkout, mode=mode, arguments=arguments, builds="3.14t, 3.14").steps["uses"]
        restored, saved = kept["restore builds and environments"], kept["save builds and environments"]
        assert (restored["key"], restored["path"]) == (saved["key"], saved["path"])
        assert restored["key"].startswith(restored["restore-keys"])
        assert "3.14t+3.14" in restored["key"]
        assert "," not in restored["key"]
        keys.append(restored["key"])
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


# the comment

@pytest.fixture
def api(runner):
    """Return the fake of the API, which `runner` uses in a pull request."""
    with fake_api() as fake:
        runner.api, runner.event = fake.address, PULL_REQUEST
        yield fake


@pytest.mark.slow
def test_comment_is_made_once_and_then_kept_up_to_date(runner, api, tmp_path):
    checkout = project(tmp_path / "shop", {"clicks.py": RACY})
    call = {"mode": "race", "arguments": "clicks.py", "comment": "true"}
    done = runner.run(checkout, **call)
    assert (done.status, done.ran[-1]) == (1, "fail if something was found")   # after the comment
    (comment,) = api.comments
    assert "gilscope race: 1 data race" in comment["body"]
    assert f"{HEAD} · [run](http://server.test/somebody/shop/actions/runs/42)" in comment["body"]
    runner.run(checkout, **call)
    assert [method for method, _ in api.writes] == ["POST", "PATCH"]
    (checkout / "clicks.py").write_text(LOCKED)
    assert runner.run(checkout, **call).status == 0
    assert [each["id"] for each in api.comments] == [comment["id"]]
    assert "no data race in what this run did" in comment["body"]
    # Another use has its own comment, but not to say that nothing was found.
    runner.run(checkout, **call, name="3.14t")
    assert len(api.comments) == 1
    (checkout / "clicks.py").write_text(RACY)
    runner.run(checkout, **call, name="3.14t")
    assert "gilscope race (3.14t): 1 data race" in api.comments[1]["body"]


@pytest.fixture
def commented(runner, api, tmp_path):
    """Return a function that runs all steps but the check, whose outcome it makes up."""
    made_up = tmp_path / "outcome"
    made_up.mkdir()
    (made_up / "summary.md").write_text("### 1 data race\n")
    (made_up / "outcome.json").write_text(json.dumps({"result": "findings", "summary": str(made_up / "summary.md")}))
    runner.left_out = ("install", "check", "fail if something was found")
    runner.action = json.loads(json.dumps(runner.action))
    (step,) = (each for each in runner.action["runs"]["steps"] if each["name"] == "comment")
    step["env"]["FOLDER"] = str(made_up)
    checkout = project(tmp_path / "shop", {"clicks.py": RACY})
    return lambda **inputs: runner.run(checkout, mode="race", comment="true", **inputs)


@pytest.mark.slow
def test_comment_is_found_on_a_later_page(commented, api):
    commented()
    (own,) = api.comments
    api.comments[:] = [{"id": number, "body": "no", "user": {"type": "User"}} for number in range(250)]
    api.comments.insert(230, own)
    commented()
    assert [method for method, _ in api.writes] == ["POST", "PATCH"]
    assert api.writes[-1][1].endswith(f"/{own['id']}")


@pytest.mark.slow
def test_comment_of_others_with_the_marker_is_left_alone(commented, api):
    commented()
    (own,) = api.comments
    api.comments.insert(0, {"id": 1, "body": f"> {own['body']}", "user": {"type": "Bot"}})   # quoted
    api.comments.insert(0, {"id": 2, "body": own["body"], "user": {"type": "User"}})         # copied
    commented()
    assert api.writes[-1] == ("PATCH", f"/repos/somebody/shop/issues/comments/{own['id']}")


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 404, 500])
def test_refused_comment_is_said_and_fails_nothing(commented, api, status):
    api.refuse = status
    done = commented()
    assert done.status == 0
    ((_, text),) = done.commands("warning")
    assert f"no comment was written, the answer was {status}" in text
    assert ("every pull request from a fork" in text) is (status != 500)
    assert api.comments == []


@pytest.mark.slow
def test_token_that_is_not_accepted_is_said(commented, api):
    done = commented(token="another")
    assert (done.status, api.comments) == (0, [])
    assert "the answer was 401" in done.commands("warning")[0][1]


@pytest.mark.slow
def test_api_that_does_not_answer_is_said(commented, runner):
    runner.api = "http://127.0.0.1:9"
    done = commented()
    assert done.status == 0
    assert "no comment was written" in done.commands("warning")[0][1]


@pytest.mark.slow
def test_event_that_is_no_pull_request_has_no_comment(commented, runner, api):
    runner.event = {"before": HEAD}
    done = commented()
    assert (done.status, api.asked) == (0, [])
    assert "This event is no pull request" in done.log


@pytest.mark.slow
def test_long_comment_is_cut_at_a_line(commented, api, tmp_path):
    (tmp_path / "outcome" / "summary.md").write_text("ä" * 99 + "\n" + ("é" * 99 + "\n") * 999)
    commented()
    (own,) = api.comments
    assert len(own["body"]) < 65_536
    assert set(own["body"].split("\n\nThe rest is left out here")[0].splitlines()[1:]) == {"ä" * 99, "é" * 99}


# guard, doctor, dist: on the newest build without a GIL

@pytest.fixture(scope="module")
def pair():
    return newest_pair()


@pytest.fixture(scope="module")
def libraries(pair, tmp_path_factory):
    return {build.label: library(build, tmp_path_factory) for build in pair}


@pytest.fixture(scope="module")
def free_environment(pair, libraries, tmp_path_factory):
    """Return the folder with `python` of the build without a GIL, with a package that turns the GIL on."""
    folder = tmp_path_factory.mktemp("action") / "free"
    python = with_gilscope(pair[0], folder)
    (site,) = site_folders(folder)
    (site / "turner").mkdir()
    (site / "turner" / "__init__.py").write_text("import turner.multi_plain\n")
    (site / "turner" / "multi_plain.so").write_bytes(libraries[pair[0].label].read_bytes())
    add_distribution(site, "turner")
    return python


TESTS = {"shop.py": "def price():\n    import turner\n    return 12\n", "test_price.py": """
import shop
def test_price():
    assert shop.price() == 12
"""}


@pytest.mark.slow
def test_guard_shows_the_line_that_turns_the_gil_on(runner, free_environment, tmp_path):
    runner.python = free_environment
    done = runner.run(project(tmp_path / "shop", TESTS), mode="guard", arguments="-q test_price.py")
    assert (done.status, done.outputs["result"], done.outputs["findings"]) == (1, "findings", "1")
    ((properties, text),) = done.commands("error")
    assert "file=shop.py,line=2" in properties
    assert "turner.multi_plain" in text
    assert "### ❌ gilscope guard: 1 import turned the GIL on" in done.summary
    (result,) = json.loads(Path(done.outputs["sarif"]).read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "shop.py"


@pytest.mark.slow
@pytest.mark.parametrize(("test", "variables", "fail_on", "status", "result"), [
    ("def test_it():\n    pass\n", {}, "findings", 0, "clean"),
    ("def test_it():\n    assert 1 == 2\n", {}, "never", 1, "failed"),
    ("", {}, "never", 5, "failed"),                                             # pytest's status for no tests
    ("def test_it():\n    import turner\ndef test_that():\n    assert 1 == 2\n", {}, "never", 1, "findings"),
    ("def test_it():\n    import turner\n", {}, "never", 0, "findings"),
    ("def test_it():\n    import turner\n", {"PYTHON_GIL": "0"}, "findings", 0, "inconclusive"),
    ("def test_it():\n    import turner\n", {"PYTHON_GIL": "0"}, "findings,inconclusive", 1, "inconclusive"),
])
def test_guard_tells_what_is_no_finding(runner, free_environment, tmp_path, test, variables, fail_on, status, result):
    runner.python, runner.variables = free_environment, variables
    done = runner.run(project(tmp_path / "shop", {"test_it.py": test}), mode="guard", fail_on=fail_on)
    assert (done.status, done.outputs["result"]) == (status, result)


@pytest.mark.slow
def test_guard_on_a_build_with_the_gil_is_inconclusive(runner, tmp_path):
    done = runner.run(project(tmp_path / "shop", {"test_it.py": "def test_it():\n    pass\n"}), mode="guard")
    assert (done.status, done.outputs["result"]) == (0, "inconclusive")
    assert "INCONCLUSIVE: gilscope guard: nothing was checked" in done.summary


@pytest.fixture
def offline(runner, pair, libraries, tmp_path):
    """Return a function that plants wheels of the newest pair in a folder, and the arguments that name the pair."""
    free = pair[0]
    runner.variables = {"GILSCOPE_CACHE": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "UV_NO_INDEX": "1",
                        "PIP_FIND_LINKS": str(tmp_path / "wheels"), "UV_FIND_LINKS": str(tmp_path / "wheels")}
    (tmp_path / "wheels").mkdir()
    by_tag = {f"{each.minor.replace('.', '')}{'t' if each.free_threaded else ''}": libraries[each.label].read_bytes()
              for each in pair}
    named = " ".join(f"--build={each.label}={each.executable}" for each in pair)

    def plant(kind):
        kind(WheelKit(tmp_path / "wheels", free.minor.partition(".")[2], by_tag))
        return f"--builds {free.label} {named}"

    return plant


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "status", "result"), [
    (turns_on("multi_plain"), 1, "findings"), (good, 0, "clean")], ids=["finding", "clean"])
def test_doctor_shows_the_line_of_the_lock(runner, offline, tmp_path, kind, status, result):
    checkout = project(tmp_path / "shop", {"locks/requirements.txt": "# pinned\nThing == 1.0\n"})
    done = runner.run(checkout, mode="doctor", arguments=f"--lock locks/requirements.txt {offline(kind)}")
    assert (done.status, done.outputs["result"], done.outputs["findings"]) == (status, result, str(status))
    log = json.loads(Path(done.outputs["sarif"]).read_text())["runs"][0]
    assert [each["ruleId"] for each in log["results"]] == ["package.turns-gil-on"] * status
    errors = done.commands("error")
    assert len(errors) == status
    assert all("file=locks/requirements.txt,line=2" in properties for properties, _ in errors)
    assert "thing" in done.summary


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "status", "result"), [
    (turns_on("multi_plain"), 1, "findings"), (good, 0, "clean")], ids=["finding", "clean"])
def test_dist_judges_the_wheels(runner, offline, tmp_path, kind, status, result):
    words = offline(kind)
    (tmp_path / "shop").mkdir()
    (tmp_path / "wheels").rename(tmp_path / "shop" / "dist")
    done = runner.run(tmp_path / "shop", mode="dist", arguments=f"dist/ {words}")
    assert (done.status, done.outputs["result"], done.outputs["findings"]) == (status, result, str(status))
    assert ["import.turns-gil-on" in properties for properties, _ in done.commands("error")] == [True] * status
    assert "doctor: thing 1.0" in done.summary
    assert done.outputs["sarif"] == ""


# compare

WORK = """def work(limit):
    return sum(number * number for number in range(limit * {times}))
payloads = [30_000] * 4
"""
FUNCTION = "work:work --payloads work:payloads --models threads --workers 1 --kind cpu"


def git(folder, *words):
    done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.test", *words], cwd=folder, check=True,
                          capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """Return a function that makes a checkout of a head without its base, as actions/checkout does, and the base."""
    def make(base, head):
        origin = project(tmp_path / "origin", {".gitignore": "__pycache__\n"})
        git(origin, "init", "--quiet")
        commits = []
        for files in (base, head):
            for path in origin.glob("*.py"):
                path.unlink()
            project(origin, files)
            git(origin, "add", "--all")
            git(origin, "commit", "--quiet", "--allow-empty", "-m", "a commit")
            commits.append(git(origin, "rev-parse", "HEAD"))
        git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", "shop")
        return tmp_path / "shop", commits[0]

    return make


def on_pull_request(base):
    return {"pull_request": {"number": 7, "head": {"sha": HEAD}, "base": {"sha": base}}}


@pytest.mark.slow
@pytest.mark.network   # pyperf, in the environment of each side
@pytest.mark.parametrize(("times", "threshold", "status", "result"), [
    (8, "5%", 1, "findings"), (1, "400%", 0, "clean")], ids=["slower", "not slower"])
def test_compare_measures_the_base_and_the_head_in_turn(runner, checkout, times, threshold, status, result):
    place, base = checkout({"work.py": WORK.format(times=1)}, {"work.py": WORK.format(times=times)})
    runner.event = on_pull_request(base)
    done = runner.run(place, mode="compare", arguments=FUNCTION, threshold=threshold, budget="2m")
    assert (done.status, done.outputs["result"]) == (status, result)
    assert base[:12] in done.summary
    assert "measured in turn" in done.summary
    report = json.loads(Path(done.outputs["report"]).read_text())
    assert report["gate"]["past"] == int(done.outputs["findings"])
    assert git(place, "worktree", "list").count("\n") == 0     # what was checked out is gone
    assert git(place, "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(("fail_on", "status"), [("findings", 0), ("findings,inconclusive", 1)])
def test_base_without_the_function_is_inconclusive(runner, checkout, fail_on, status):
    place, base = checkout({"other.py": ""}, {"work.py": WORK.format(times=1)})
    runner.event = {"before": base}
    done = runner.run(place, mode="compare", arguments=FUNCTION, fail_on=fail_on)
    assert (done.status, done.outputs["result"]) == (status, "inconclusive")
    assert "INCONCLUSIVE: gilscope compare: nothing to compare with" in done.summary


@pytest.mark.slow
@pytest.mark.parametrize(("event", "base", "words"), [
    ({}, "", "name a commit or a branch as `base`"),
    ({"before": "0" * 40}, "", "name a commit or a branch as `base`"),
    ({}, "--upload-pack=x", "base is '--upload-pack=x': write a commit"),
])
def test_compare_needs_something_to_compare_with(runner, tmp_path, event, base, words):
    runner.event = event
    done = runner.run(project(tmp_path / "shop", {"work.py": ""}), mode="compare", arguments=FUNCTION, base=base)
    assert done.status == 2
    assert words in done.commands("error")[0][1]


@pytest.mark.slow
def test_base_that_cannot_be_fetched_is_said(runner, checkout):
    place, _ = checkout({"work.py": WORK.format(times=1)}, {"work.py": WORK.format(times=1) + "# new\n"})
    done = runner.run(place, mode="compare", arguments=FUNCTION, base="absent")
    assert done.status == 2
    assert "absent is not in this checkout and cannot be fetched" in done.commands("error")[0][1]


# the installation, which the other tests leave out

@pytest.mark.slow
@pytest.mark.network
def test_all_steps_work_with_a_bare_python(runner, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "bare"], check=True)
    runner.python, runner.left_out = tmp_path / "bare" / "bin", ()
    checkout = project(tmp_path / "shop", {
        "clicks.py": RACY, "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n[tool.setuptools]\n'
                                             'py-modules = ["clicks"]\n'})
    here = "{}.{}".format(*sys.version_info)   # such a build is there
    done = runner.run(checkout, mode="race", arguments="clicks.py", install="--editable .", builds=here)
    assert (done.status, done.outputs["result"]) == (1, "findings")
    assert done.ran == ["prepare", "restore builds and environments", "install", "check",
                        "save builds and environments", "fail if something was found"]
    listed = subprocess.run([runner.python / "python", "-m", "pip", "list", "--format=json"], check=True,
                            capture_output=True, text=True)
    assert {"gilscope", "shop"} <= {each["name"] for each in json.loads(listed.stdout)}
