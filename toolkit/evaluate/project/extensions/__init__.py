"""The project's own extension modules: which it has, what they do when they are built, what porting them asks for."""
