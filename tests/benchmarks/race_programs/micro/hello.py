"""Nothing but a start and an end."""

print("hello")
