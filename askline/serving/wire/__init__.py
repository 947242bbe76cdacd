"""What goes over the line, one family of clients a file. Unknown fields are let pass."""

from __future__ import annotations
