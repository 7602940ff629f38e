"""`python -m toolkit`, in a checkout, is the `gilscope` command."""

import sys

from gilscope.toolkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
