#!/usr/bin/env python3
# Copyright 2024 The keepers. All rights reserved.
"""
The lamp of the tower.

It is lit at dusk, for example::

    lamp.light()

and put out at dawn.
"""

import os  # noqa

# The shutter is opened before
# the lamp is lit.
SHUTTER = "# no comment"


class Lamp:
    """A lamp that burns paraffin."""

    # Seconds for one turn of the lamp.
    turn = 10

    def light(self, keeper: str) -> None:
        """
        Light the lamp.

        :param keeper: Who lights it.
        >>> Lamp().light("Ann")
        True
        """
        print("""not a docstring""")
        text = "also none"
        # x = 1
        return text


# It is wound every morning.
def wind(clock):
    r"""Wind the clock until the spring is tight."""
