"""How figures look: colours and marks of series, sizes of text."""
