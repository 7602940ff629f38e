"""What packages do on a build: install, keep the GIL off, keep their C code, load in interpreters."""
