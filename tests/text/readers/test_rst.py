from __future__ import annotations

from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.rst import read_rst

from .samples import check, originals, read, shown

PAGE = """\
====
Page
====

:orphan:

.. _label: http://example.org
.. A comment
   on two lines.

Lead *text* with **marks**, ``a_b*``, :func:`~mod.name` and
`a link <http://example.org>`_ or ref_ [1]_.

Parts
-----
.. note:: Keep *this*
   whole. Two.

.. warning::
   :class: x

   Body text.

.. code-block:: python
   :linenos:

   x = 1.  # Not a sentence.

Example::

    literal. Not text.

max_retries
    How often it
    is tried. The default is 3.

-v, --verbose  Say more.
--dry-run
    Change nothing.

- item one
  goes on
- - nested

.. toctree::
   :maxdepth: 2

   first
   second

.. image:: a.png
   :alt: x

.. include:: other.rst
.. |name| replace:: a name

>>> 1 + 1
2

.. [1] The footnote.

End.
"""


def test_every_block_is_separate(tmp_path: Path) -> None:
    document = read(tmp_path, "a.rst", PAGE)
    assert (document.kind, document.title) == ("rst", "Page")
    assert shown(document) == [
        ("heading", "Page"),
        ("sentence", "Lead text with marks, a_b*, name and a link or ref."),
        ("heading", "Parts"),
        ("sentence", "Keep this whole."),
        ("sentence", "Two."),
        ("sentence", "Body text."),
        ("code", "x = 1.  # Not a sentence."),
        ("sentence", "Example:"),
        ("code", "literal. Not text."),
        ("sentence", "max_retries: How often it is tried."),
        ("sentence", "The default is 3."),
        ("sentence", "-v, --verbose: Say more."),
        ("sentence", "--dry-run: Change nothing."),
        ("sentence", "item one goes on"),
        ("sentence", "nested"),
        ("code", ">>> 1 + 1\n2"),
        ("sentence", "The footnote."),
        ("sentence", "End."),
    ]
    assert {s.heading for s in iter_sentences(document)} == {"", "Page", "Parts"}
    check(document)


def test_offsets_slice_the_source_including_marks(tmp_path: Path) -> None:
    document = read(tmp_path, "a.rst", PAGE)
    found = originals(document)
    assert found[1].startswith("Lead *text* with **marks**, ``a_b*``, :func:`~mod.name` and\n")
    assert found[9] == "max_retries\n    How often it\n    is tried."
    lines = [document.place(s.start).number for s in iter_sentences(document)]
    assert lines[:4] == [2, 11, 14, 16]


def test_windows_line_ends(tmp_path: Path) -> None:
    windows = read(tmp_path, "b.rst", PAGE.replace("\n", "\r\n"))
    unix = read(tmp_path, "a.rst", PAGE)
    assert [text for _, text in shown(windows) if "\r" not in text][:9] == [
        text for _, text in shown(unix)
    ][:9]
    check(windows)


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (
            "===  ===\nA    B\n===  ===\n1    two\n3    four\n     five\n===  ===\n",
            [("columns", "A\nB"), ("row", "1\ntwo"), ("row", "3\nfour five")],
        ),
        (
            "+----+----+\n| h1 | h2 |\n+====+====+\n| a  | b  |\n| a2 |    |\n+----+----+\n",
            [("columns", "h1\nh2"), ("row", "a a2\nb")],
        ),
        (
            ".. list-table::\n :header-rows: 1\n\n * - Name\n   - Value\n * - x\n   - y\n     z",
            [("columns", "Name\nValue"), ("row", "x\ny z")],
        ),
        (
            '.. csv-table:: Title\n   :header: "A", "B"\n\n   "1, 2", 3\n',
            [("columns", "A\nB"), ("row", "1, 2\n3")],
        ),
    ],
    ids=["simple", "grid", "list", "csv"],
)
def test_tables_are_rows(tmp_path: Path, source: str, rows: list[tuple[str, str]]) -> None:
    document = read(tmp_path, "a.rst", source)
    assert shown(document) == rows
    check(document)


def test_grid_row_of_several_lines_slices_its_lines(tmp_path: Path) -> None:
    document = read(tmp_path, "a.rst", "+---+---+\n| a | b |\n| c |   |\n+---+---+\n")
    assert shown(document) == [("row", "a c\nb")]
    assert originals(document) == [" a | b |\n| c "]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (".. option:: --all\n\n   Take *all*.\n", "--all: Take all."),
        (".. confval:: size\n   :type: int\n\n   The size.\n", "size: The size."),
        (":param int x: The value.\n", "x: The value."),
        (".. versionadded:: 2.1\n   The thing.\n", "versionadded 2.1 The thing."),
        (".. versionadded:: 2.1\n", ""),
        (".. automodule:: a.b\n   :members:\n", ""),
        ("| one\n| two\n", "one two"),
        ("a \\*b\\* and x\\ s", "a *b* and xs"),
        ("2 * 3 and snake_case", "2 * 3 and snake_case"),
        (":issue:`12`: Fixed.", "12: Fixed."),
        ("`Only <http://x>`__ and |name|", "Only and name"),
        ("Only text::\n", "Only text:"),
        ("Run it:\n\n::\n\n$ nice ls\n\n$5 is paid.", "Run it:\n$ nice ls\n$5 is paid."),
        ("", ""),
    ],
)
def test_rst_syntax(source: str, text: str) -> None:
    content = read_rst(source)
    assert "\n".join(content.text[b.start : b.end] for b in content.blocks) == text


def test_a_line_block_in_a_list_item_is_read(tmp_path: Path) -> None:
    document = read(tmp_path, "a.rst", "* | One line.\n  | Two.\n\n* Item.\n")
    assert [text for _, text in shown(document)] == ["One line.", "Two.", "Item."]


def test_the_type_of_a_result_is_left_out(tmp_path: Path) -> None:
    source = "Lamp\n====\n\n:param oil: Its oil.\n:rtype: bool\n"
    assert [text for _, text in shown(read(tmp_path, "a.rst", source))] == ["Lamp", "oil: Its oil."]
