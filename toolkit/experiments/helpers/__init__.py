"""Parts of several experiments' programs, which run in the measured process and so import little."""
