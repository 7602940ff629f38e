"""What experiments measure: `measure(trial) -> Taken`, run in a process of the build being measured; imports little."""
