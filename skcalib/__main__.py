"""``python -m skcalib``: the command line."""

import sys

from .report._command_line import main

if __name__ == "__main__":
    sys.exit(main())
