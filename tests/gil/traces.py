"""The Trace Event Format, checked strictly."""


def checked(found):
    """Check every event of a trace against the format, and that spans of a thread lie within or beside each other."""
    assert set(found) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert found["displayTimeUnit"] in {"ms", "ns"}
    open_until, latest = {}, float("-inf")
    for event in found["traceEvents"]:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            key = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}[event["name"]]
            assert event["args"].keys() == {key}
            continue
        assert event.keys() == {"name", "cat", "ph", "pid", "tid", "ts", "dur", "args"}
        assert event["ph"] == "X"
        assert event["ts"] >= max(0, latest)
        assert event["dur"] >= 0
        latest = event["ts"]
        around = open_until.setdefault((event["pid"], event["tid"]), [])
        while around and around[-1] <= event["ts"] + 0.0005:   # times are rounded to nanoseconds
            around.pop()
        assert not around or event["ts"] + event["dur"] <= around[-1] + 0.002
        around.append(event["ts"] + event["dur"])
    return found["traceEvents"]
