"""The `askline` command, also as `python -m askline`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is loaded gives no traceback."""
    # Importing makes many objects and no garbage: look for garbage less often.
    gc.set_threshold(50_000, 20, 50)
    try:
        from .cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
