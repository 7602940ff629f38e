"""Settings, and how often they were read again."""

name = "production"
generation = 0


def reload():
    global generation
    generation += 1
