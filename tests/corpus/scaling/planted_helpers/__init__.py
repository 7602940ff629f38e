"""What programs beside this package import from another module."""
