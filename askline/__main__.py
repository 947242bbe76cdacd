"""The `askline` command, also as `python -m askline`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is loaded gives no traceback."""
    try:
        from .cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
