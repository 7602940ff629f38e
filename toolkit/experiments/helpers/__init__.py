"""What several experiments' programs need, run in a process of the build being measured; imports little."""
