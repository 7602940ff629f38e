"""Hosts as JSON: they fit the schemas that are shipped, and say what the tables say."""

import json

import pytest

from gilscope.toolkit.report.as_json import comparison
from gilscope.toolkit.report.hosts.agreement import hosts_contrasts, measured_host
from gilscope.toolkit.report.hosts.as_json import hosts_compare_values, hosts_values
from gilscope.toolkit.report.hosts.comparison import hosts_in_short
from tests.report.hosts.made_up import HOSTS, STATES, across, contrast, host_run
from tests.report.test_as_json import check

pytestmark = pytest.mark.newest


@pytest.fixture(scope="module")
def values():
    return hosts_values("night", [measured_host(name, host_run(name)) for name in HOSTS], STATES)


def test_values_fit_their_schema_and_say_what_the_table_says(values):
    check(values)
    (cell,) = [each for each in values["cells"] if (each["model"], each["build"]) == ("asyncio", "3.14")]
    assert (cell["over"]["verdict"], cell["over"]["others"]) == ("faster", {"slower": ["host-2"]})
    assert cell["over"]["hosts"]["host-2"]["ratio"]["verdict"] == "slower"
    assert cell["over"]["pooled"]["verdict"] == "cannot tell"
    assert [each["state"] for each in values["hosts"]] == ["finished"] * 4 + ["lost"]
    assert values["hosts"][4]["run"] is None
    assert "secret" not in json.dumps(values)


def test_hosts_that_nobody_says_anything_of_fit_the_schema():
    check(hosts_values("night", [measured_host("laptop", host_run("host-1"))]))


def test_comparison_fits_its_schema():
    contrasts = across(0.9)
    values = check(hosts_compare_values(contrasts, baseline="night", sample="after", notes=(), margin=0.03,
                                        sentences=hosts_in_short(contrasts)))
    first = next(each for each in contrasts if each.contrast.comparison)
    assert values["cells"][0]["ratio"] == comparison(first.contrast.comparison)
    assert set(values["cells"][0]["over"]["hosts"]) == set(HOSTS)


def test_more_hosts_would_tell_and_not_more_rounds():
    contrasts = hosts_contrasts({f"host-{k}": [contrast(1.0, 0.08)] for k in range(3)})
    values = check(hosts_compare_values(contrasts, baseline="a", sample="b", notes=(), margin=0.03))
    assert comparison(contrasts[0].contrast.comparison)["rounds_to_tell"] > 24
    assert values["cells"][0]["ratio"]["verdict"] == "cannot tell"
    assert values["cells"][0]["ratio"]["rounds_to_tell"] is None
