"""Ask a build what extension files declare and what importing them does, in processes of that build."""
