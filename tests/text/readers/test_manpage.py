from __future__ import annotations

from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.manpage import read_manpage

from .samples import check, originals, read, shown

PAGE = r""".\" A comment.
.TH LAMP 1 "2026-01-01"
.de XX
Not. Text.
..
.if n \{\
.ad l
.\}
.SH NAME
lamp \- light a \fIlamp\fR
.SH SYNOPSIS
.B lamp
.RI [ OPTION ]...
.SH DESCRIPTION
The \fBlamp\fP is lit. See
.BR torch (1)
and
.I file
too.
.PP
A new paragraph.
.SS "Two words"
.TP
.BR \-v ", " \-\-verbose
Say more. Much more.
.TP
.B \-q
.TQ
.B \-\-quiet
Say less.
.IP \(bu 2
An item.
.IP max_retries
How often it is tried.
.nf
x = 1.  Not a sentence.
.fi
.PP
\fB\-\-old\fR
.RS 4
An old option.
.RE
End.
"""
MDOC = r""".Dd January 1, 2026
.Dt LAMP 1
.Sh NAME
.Nm lamp
.Nd light a lamp
.Sh DESCRIPTION
The
.Nm
utility lights, see
.Xr torch 1 .
.Bl -tag
.It Fl v , Fl -verbose
Say more.
.El
.Bd -literal
code here
.Ed
"""


def test_every_block_is_separate(tmp_path: Path) -> None:
    document = read(tmp_path, "lamp.1", PAGE)
    assert (document.kind, document.title) == ("manpage", "LAMP")
    assert shown(document) == [
        ("heading", "NAME"),
        ("sentence", "lamp - light a lamp"),
        ("heading", "SYNOPSIS"),
        ("code", "lamp [OPTION]..."),
        ("heading", "DESCRIPTION"),
        ("sentence", "The lamp is lit."),
        ("sentence", "See torch(1) and file too."),
        ("sentence", "A new paragraph."),
        ("heading", "Two words"),
        ("sentence", "-v, --verbose: Say more."),
        ("sentence", "Much more."),
        ("sentence", "-q, --quiet: Say less."),
        ("sentence", "An item."),
        ("sentence", "max_retries: How often it is tried."),
        ("code", "x = 1.  Not a sentence."),
        ("sentence", "--old: An old option."),
        ("sentence", "End."),
    ]
    assert [s.heading for s in iter_sentences(document)][-1] == "Two words"
    check(document)


def test_mdoc_macros(tmp_path: Path) -> None:
    document = read(tmp_path, "lamp.8", MDOC)
    assert shown(document) == [
        ("heading", "NAME"),
        ("sentence", "lamp light a lamp"),
        ("heading", "DESCRIPTION"),
        ("sentence", "The lamp utility lights, see torch 1."),
        ("sentence", "-v, --verbose: Say more."),
        ("code", "code here"),
    ]
    check(document)


def test_offsets_slice_the_source(tmp_path: Path) -> None:
    document = read(tmp_path, "lamp.1", PAGE)
    found = originals(document)
    assert found[1] == r"lamp \- light a \fIlamp"
    assert found[6] == "See\n.BR torch (1)\nand\n.I file\ntoo."
    assert found[9] == '\\-v ", " \\-\\-verbose\nSay more.'
    assert document.place(document.text.index("A new")).number == 21


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"a\ b \(em c\(aqs \[u00E9] \*(lqq\*(rq \s-1D\s0 x\\y", "a b — c's é “q” D x\\y"),
        (".TS\nl l.\na\tb\nT{\nlong\ntext\nT}\tc\n.TE", "a\nb\nlong text\nc"),
        (".TS\ntab(:);\nl l.\na b:c\n.TE", "a b\nc"),
        (".EX\ncode\n.EE\ntext", "code\ntext"),
        (".IP\ntext", "text"),
        ("$ run it", "$ run it"),
    ],
)
def test_roff_syntax(source: str, text: str) -> None:
    content = read_manpage(f".SH X\n{source}\n")
    assert "\n".join(content.text[b.start : b.end] for b in content.blocks) == f"X\n{text}"


def test_other_files_with_the_suffix_are_plain_text(tmp_path: Path) -> None:
    document = read(tmp_path, "app.log.1", "Started. Then stopped.\n")
    assert shown(document) == [("sentence", "Started."), ("sentence", "Then stopped.")]
