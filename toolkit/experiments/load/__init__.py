"""Clients and servers on gilscope's own Python, so that they cost the same for every build."""
