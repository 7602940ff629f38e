"""Reports in one file each: a page of what one command found, to attach, to mail or to keep."""
