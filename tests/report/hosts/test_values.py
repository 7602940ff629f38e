"""Hosts as JSON: they fit the schemas that are shipped, and say what the tables say."""

import json

import pytest

from gilscope.toolkit.report.hosts.agreement import measured_host
from gilscope.toolkit.report.hosts.as_json import hosts_values
from tests.report.hosts.made_up import HOSTS, STATES, host_run
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
    assert [each["state"] for each in values["hosts"]] == ["finished"] * 4 + ["lost"]
    assert values["hosts"][4]["run"] is None
    assert "secret" not in json.dumps(values)


def test_hosts_that_nobody_says_anything_of_fit_the_schema():
    check(hosts_values("night", [measured_host("laptop", host_run("host-1"))]))
