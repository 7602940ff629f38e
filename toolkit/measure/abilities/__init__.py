"""What a build can do: asked in processes of its own, before anything is planned."""
