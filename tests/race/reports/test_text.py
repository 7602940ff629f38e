"""The short report: frames of libraries folded, the races of a variable together, a list of repairs at the end."""

from dataclasses import replace

from gilscope.toolkit.race.report import text
from gilscope.toolkit.race.report.model import Spot
from tests.race.fakes.report import FLAG, ROOT, frame, make_access, make_race, make_report

SITE = "/venv/lib/python3.13/site-packages"


def library_frames(count):
    return tuple(frame(f"{SITE}/flask/app.py:{900 + number}", "Flask.wsgi_app", "response = call()")
                 for number in range(count))


def web_access(line, *, thread="Thread-1", **changes):
    """Return an access under a web framework: 8 of its frames, ours, 3 of the standard library."""
    stack = (*library_frames(5), *(frame(f"{SITE}/werkzeug/test.py:{number}", "open") for number in (1, 2, 3)),
             frame("load.py:10", "client", "get(page)"),
             *(frame(f"/usr/lib/python3.13/concurrent/futures/thread.py:{number}", "run") for number in (58, 92, 93)))
    started = (frame("/usr/lib/python3.13/concurrent/futures/thread.py:176", "submit"),
               frame("load.py:14", "<module>", "pool.map(client)"))
    return make_access(thread=thread, place=frame(f"service.py:{line}", "count", f"line {line}"), stack=stack,
                       lines=(line, line), started=started, **changes)


def web_race(base, line, other=None, **changes):
    return make_race(variable=base, base=base, first=web_access(line, thread="Thread-2"),
                     second=web_access(other or line), repair=f"Hold one lock: service.py:{line}.", **changes)


def shown(*races, **options):
    return text.render(make_report(races=races, notes=(FLAG,), unrewritten=(), unused_suppressions=(),
                                   unexplained_suppressions=()), **options)


def test_frames_of_libraries_become_one_line():
    said = shown(web_race("hits", 16, 17))
    assert said.count("<- 8 frames of flask, werkzeug\n") == 2
    assert "concurrent.futures" not in said      # below the outermost frame of the program
    assert "Flask.wsgi_app" not in said
    assert said.count("load.py:10 in client") == 2
    assert said.count("started at load.py:14 in <module>") == 2


def test_installed_project_is_no_library(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'acme-billing'\n")
    site = tmp_path / ".venv" / "lib" / "python3.13" / "site-packages"
    (site / "acme_billing-1.dist-info").mkdir(parents=True)
    (site / "acme_billing-1.dist-info" / "RECORD").write_text("acme/main.py,,\n")
    started = (frame("/usr/lib/python3.13/concurrent/futures/thread.py:176", "submit"),
               frame(f"{site}/acme/main.py:12", "main"), frame("billrun:6", "<module>"))
    side = make_access(place=frame(f"{site}/acme/main.py:8", "book"), lines=(8, 8), started=started,
                       stack=(*library_frames(3), frame(f"{site}/acme/main.py:10", "run"), *library_frames(2)))
    race = make_race(first=side, second=side)
    for root, expected in ((tmp_path, "acme/main.py:12 in main"), (tmp_path / "empty", "billrun:6")):
        said = text.render(make_report(races=(race,), root=str(root)))
        assert f"started at {expected if root == tmp_path else ROOT + '/' + expected}" in said
        assert ("<- acme/main.py:10 in run" in said, "6 frames of flask, acme" in said) == (
            root == tmp_path, root != tmp_path)


def test_stacks_shows_every_frame():
    said = shown(web_race("hits", 16, 17), stacks=True)
    assert said.count("in Flask.wsgi_app") == 10
    assert "frames of" not in said


def test_two_sides_of_one_line_are_described_once():
    said = shown(web_race("hits", 18))
    assert said.count("service.py:18 in count") == 1
    assert said.splitlines()[3:5] == ["  write  Thread-1, holding nothing", "  write  Thread-2, holding nothing"]
    assert shown(web_race("hits", 18), stacks=True).count("service.py:18 in count") == 2


def test_two_threads_of_one_name_are_said_to_be_two():
    race = replace(web_race("hits", 18), first=web_access(18))
    assert "Thread-1 (another thread of this name), holding nothing" in shown(race)
    assert "(another thread" not in shown(web_race("hits", 18))


def test_races_of_a_variable_stand_together_and_the_list_has_each_variable_once():
    said = shown(web_race("hits", 18), web_race("orders", 23), web_race("hits", 16, 17, kind="check-then-act"))
    assert [line for line in said.splitlines() if line.startswith("DATA RACE")] == [
        "DATA RACE on hits: lost update (seen 12 times)", "DATA RACE on orders: lost update (seen 12 times)"]
    assert "    check-then-act: write at service.py:17 in count, write at service.py:16 in count, seen 12 times" in said
    assert "gilscope race: 3 data races on 2 variables, 1 note" in said
    listed = said.partition("\nRepairs\n")[2].splitlines()
    assert listed[:4] == [
        "  hits  service.py:16, 17, 18",
        "      Hold one lock over service.py:16, 17 and 18.", "  orders  service.py:23",
        "      Hold one lock: service.py:23."]


def test_items_of_one_container_are_one_variable_and_each_is_named():
    one, other = web_race("hits", 16, 17), web_race("hits", 18)
    said = shown(replace(one, variable="hits['a']"), replace(other, variable="hits['b']"), web_race("orders", 23))
    assert "DATA RACE on hits['a']: lost update" in said
    assert "    lost update on hits['b']: write at service.py:18 in count" in said
    assert "\n  hits  service.py:16, 17, 18\n" in said


def test_one_variable_needs_no_list():
    assert "Repairs" not in shown(web_race("hits", 18))


def test_long_report_keeps_to_its_lines_and_lists_every_variable():
    races = [web_race(f"variable_{number}", 10 * number) for number in range(1, 13)]
    said = shown(*races)
    assert len(said.splitlines()) <= text.MOST_LINES
    assert all(f"  variable_{number}  service.py:{10 * number}" in said for number in range(1, 13))
    hidden = 12 - said.count("DATA RACE")
    assert f"  {hidden} variables with races are in this list alone" in said
    assert shown(*races, stacks=True).count("DATA RACE") == 12


def test_a_finding_is_at_most_twenty_lines_with_stacks_and_pairs_of_any_number():
    deep = tuple(frame(f"bank.py:{line}", f"step_{line}") for line in range(30))
    partner = Spot(path=f"{ROOT}/pool.py", line=8, column=0, op="size", source="if self.jobs:")
    side = web_access(16, partner=partner)
    race = web_race("hits", 16)
    longest = replace(race, first=replace(side, stack=deep, started=deep, thread="Thread-2"),
                      second=replace(web_access(17, partner=partner), stack=deep, started=deep))
    said = shown(longest, *(web_race("hits", line) for line in range(30)))
    block = said.partition("\n\n")[2].partition("\n\n")[0].splitlines()
    assert (block[0], len(block)) == ("DATA RACE on hits: lost update (seen 12 times)", text.MOST_OF_FINDING)
    assert block[-1] == "    and 28 more (--stacks shows them)"
    assert "<- bank.py:0 in step_0" in said
    assert "<- 29 more" in said
    assert said.count("started at bank.py:0 in step_0") == 2
