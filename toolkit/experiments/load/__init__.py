"""Clients and servers that run on gilscope's own Python, so that they cost the same for every build."""
