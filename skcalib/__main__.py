"""The program ``skcalib``, also ``python -m skcalib``: it ends in one line whatever happens."""

import os
import sys


def main() -> int:
    """Import the commands, which takes a second, run one, and return the exit status."""
    try:
        # a stream that was closed holds nothing, or leads nowhere; but no report is made for nobody
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
        sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
        if sys.stdout is None:
            print("skcalib: error: standard output is closed; redirect it", file=sys.stderr)
            return 2
        from ._cli.command_line import run_command as run

        return run()
    except KeyboardInterrupt:
        print("skcalib: interrupted", file=sys.stderr)
        return 130  # 128 + SIGINT


if __name__ == "__main__":
    sys.exit(main())
