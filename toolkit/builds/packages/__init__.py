"""The packages a build needs: environments, what installs into them, what they lack."""
