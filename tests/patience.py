"""How long a test waits for what takes a moment: so long that only a hang lasts longer, on whatever machine."""

PATIENCE = 600.0   # seconds
