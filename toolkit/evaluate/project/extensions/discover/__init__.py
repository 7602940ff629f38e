"""Which extension modules a build would make, by the configuration of each kind of build; nothing of it is run."""
