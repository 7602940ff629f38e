"""The race checker over what the project does: its workload from several threads, its tests as they are or at once."""
