"""
What packages take on disk, as pip wrote them, without what they need in turn.

    python -m research.benchmarks.package_sizes pypdfium2 pypdf pdfminer.six charset-normalizer …

Modules that pip compiled are counted. Packages that are not installed are left out.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from .report import save


def installed_mb(package: str) -> float | None:
    """None where it is not installed."""
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        return None
    places = [Path(file.locate()) for file in files]
    return round(sum(place.stat().st_size for place in places if place.exists()) / 1e6, 1)


def main() -> None:
    found = {name: size for name in sys.argv[1:] if (size := installed_mb(name)) is not None}
    for name, size in found.items():
        print(f"{name:24}{size:6.1f} MB")
    print(f"\nKept in {save('package_sizes', {'MB installed': found}, *found)}")


if __name__ == "__main__":
    main()
