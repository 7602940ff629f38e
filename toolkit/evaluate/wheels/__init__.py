"""The wheels of one project, judged as a set before they are uploaded."""
