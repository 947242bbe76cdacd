"""The tokeniser of the transformer tests."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from ..transformer.conftest import tokeniser, transformers

__all__ = ["tokeniser", "transformers"]
