"""From what was seen of a distribution to what it is called.  Pure: nothing here starts or reads anything."""
