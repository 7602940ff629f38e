"""What sources of extension modules do that the GIL protects; comments and strings do not count."""
