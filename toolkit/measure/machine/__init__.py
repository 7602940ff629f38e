"""What the machine is and what else it does: cores, noise, CPU time and memory of a process tree."""
