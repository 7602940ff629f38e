"""Examine packages on a build: do they install, leave the GIL off, keep their C code, load in interpreters?"""
