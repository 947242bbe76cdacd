from __future__ import annotations

from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.asciidoc import read_asciidoc

from .samples import check, originals, read, shown

PAGE = """\
// A comment.
= The *Page*
Jane Doe <jane@example.org>
v1.0, 2026-01-01
:toc:
:product: Lamp

Lead _text_ with *marks*, `code_x` and link:http://example.org[a link].
See xref:other.adoc#part[the part], <<part,this part>> and https://example.org[].

[[part]]
== Part one
include::other.adoc[]

NOTE: Keep this.

[source,python]
----
x = 1.  # Not a sentence.
----

====
An example of the {product}.
====

****
A sidebar.
****

////
Hidden. Text.
////

max_retries:: How often it
is tried. The default is 3.
`-v`::
`--verbose`::
  Says more.

* item one
goes on
** nested
+
----
attached code
----
. step

 literal text

|===
|Name |Value

|a
|one

|b |two
|===

image::a.png[A picture]
"""


def test_every_block_is_separate(tmp_path: Path) -> None:
    document = read(tmp_path, "a.adoc", PAGE)
    assert (document.kind, document.title) == ("asciidoc", "The Page")
    assert shown(document) == [
        ("heading", "The Page"),
        ("sentence", "Lead text with marks, code_x and a link."),
        ("sentence", "See the part, this part and https://example.org."),
        ("heading", "Part one"),
        ("sentence", "Keep this."),
        ("code", "x = 1.  # Not a sentence."),
        ("sentence", "An example of the Lamp."),
        ("sentence", "A sidebar."),
        ("sentence", "max_retries: How often it is tried."),
        ("sentence", "The default is 3."),
        ("sentence", "-v, --verbose: Says more."),
        ("sentence", "item one goes on"),
        ("sentence", "nested"),
        ("code", "attached code"),
        ("sentence", "step"),
        ("code", "literal text"),
        ("columns", "Name\nValue"),
        ("row", "a\none"),
        ("row", "b\ntwo"),
    ]
    assert [s.heading for s in iter_sentences(document)][-1] == "Part one · Name | Value"
    check(document)


def test_offsets_slice_the_source_including_marks(tmp_path: Path) -> None:
    document = read(tmp_path, "a.adoc", PAGE)
    found = originals(document)
    assert found[1].startswith("Lead _text_ with *marks*, `code_x` and link:")
    assert found[8] == "max_retries:: How often it\nis tried."
    assert found[6] == "An example of the {product}."
    assert document.place(document.text.index("Keep this")).number == 15


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Title\n-----\n\ntext", "Title\ntext"),
        (".Caption\ntext", "Caption\ntext"),
        ("a **b**c __d__ #e# ^f^", "a bc d e f"),
        ("2 * 3 and snake_case_name", "2 * 3 and snake_case_name"),
        ('[.lead]#Styled# and "`quoted`"', 'Styled and "quoted"'),
        ("Press kbd:[Ctrl+C] in image:a.png[x] footnote:[gone] it.", "Press Ctrl+C in   it."),
        ("{unknown} and {nbsp}x", "{unknown} and  x"),
        ("{url}/a[the *page*^,window=_blank]", "the page"),
        ("a ((term)) (((x, y)))b", "a term b"),
        ("one +\ntwo\n// no\nthree", "one two three"),
        ("++++\n<b>raw</b>\n++++\n", ""),
        ("[stem]\n++++\nx^2\n++++\n", ""),
        ("[source]\nx = 1\n\ntext", "x = 1\ntext"),
        ("```ruby\nputs 1\n```\n", "puts 1"),
        ("term::\n* item", "term\nitem"),
        ("Set `lamp.*` or `oil.*` *now*.", "Set lamp.* or oil.* now."),
        ("a::\n+\n    x = 1\n+\nIt is set.", "a\n    x = 1\nIt is set."),
        ("See linkdoc:qa[The guide,CI_X,docs/a.txt].", "See The guide."),
        ("ifdef::x[]\ntext\nendif::[]", "text"),
        ('[cols="2*"]\n|===\n|a\n|b\n2+|c\n|===', "a\nb\nc"),
        ("", ""),
    ],
)
def test_asciidoc_syntax(source: str, text: str) -> None:
    content = read_asciidoc(source)
    assert "\n".join(content.text[b.start : b.end] for b in content.blocks) == text


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        ("Jane Doe <jane@example.org>\nv1.0, 2026-01-01\n\nText.", ["Text."]),
        ("== Engine\nIt has 29 hp.\n\nMore text.", ["Engine", "It has 29 hp.", "More text."]),
        ("The first words stand right below it.\n\nMore.", None),
        ("NOTE: Keep it dry.\n\nMore.", ["Keep it dry.", "More."]),
    ],
)
def test_only_names_and_versions_are_left_out_below_the_title(
    tmp_path: Path, below: str, expected: list[str] | None
) -> None:
    document = read(tmp_path, "a.adoc", f"= Manual\n{below}\n")
    wanted = expected or ["The first words stand right below it.", "More."]
    assert [text for _, text in shown(document)] == ["Manual", *wanted]
