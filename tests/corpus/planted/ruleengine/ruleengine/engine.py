"""Business rules as text, compiled once."""

RULES = {
    "count": "seen = seen + 1",
    "sum": "total = total + 7",
    "late": "late = late + (seen % 10 == 0)",
}

STATE = {"seen": 0, "total": 0, "late": 0}
CODE = [compile(text, f"<rule {name}>", "exec") for name, text in RULES.items()]


def feed():
    for code in CODE:
        exec(code, STATE)
