"""What the race checker runs of ours in a process of a build; imports the standard library alone."""
