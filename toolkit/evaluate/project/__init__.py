"""What the project itself does on a build: its tests, its workload, and what its workers take."""
