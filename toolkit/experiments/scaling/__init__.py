"""`scaling`: the atlas of what scales over free threads: operations of Python and its library, build by build."""
