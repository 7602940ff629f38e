"""CPU work that runs beside what is measured; imports little."""
