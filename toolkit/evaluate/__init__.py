"""What a project's packages do on a build: do they install, keep the GIL off, keep their C code, load in interpreters.

Nothing of a package is ever imported in our own process: `slots_child` and `import_child` run in the build asked about.
"""
