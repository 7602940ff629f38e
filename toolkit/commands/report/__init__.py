"""`gilscope report`: `command` shows runs, `publishing` writes copies for others; `runs` has what both do."""
