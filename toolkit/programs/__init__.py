"""Programs of the user's that `race` and `gil` run: how each is named, found and started in the foreground."""

SCRIPT, MODULE, STDIN = "script", "module", "stdin"     # a script may be a folder or zip file with `__main__.py`
COMMAND = "command"     # a module, run because no script of that name exists or fits the build
