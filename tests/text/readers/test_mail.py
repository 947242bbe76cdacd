from __future__ import annotations

import time
from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.mail import read_mail

from .samples import check, read, shown

PLAIN = """\
From: Jane <jane@example.org>
To: John <john@example.org>
Subject: =?utf-8?q?Lamps_=C3=A9?=
Date: Mon, 5 Jan 2026 10:00:00 +0000
Message-ID: <1@example.org>
Content-Type: text/plain; charset="utf-8"
Content-Transfer-Encoding: quoted-printable

The lamp caf=C3=A9 is lit. It is a very long line that is =
wrapped.

On Monday, 4 January 2026,
John wrote:
> Is it lit?
> Tell me.

Yes.

--=20
Jane, Lamp Company
"""
MULTIPART = """\
Subject: Parts
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: multipart/alternative; boundary="c"

--c
Content-Type: text/plain

Plain text.
--c
Content-Type: text/html

<p>HTML <b>text</b>.</p>
--c--
--b
Content-Type: text/html; charset=latin-1
Content-Transfer-Encoding: base64

PHA+T25seSA8Yj5IVE1MPC9iPi48L3A+
--b
Content-Type: text/plain
Content-Disposition: attachment; filename="a.txt"

Attached. Not read.
--b--
"""


def test_own_text_is_read_without_headers_quotes_and_signature(tmp_path: Path) -> None:
    document = read(tmp_path, "a.eml", PLAIN)
    assert (document.kind, document.title, document.encoding) == ("mail", "Lamps é", None)
    assert shown(document) == [
        ("sentence", "The lamp café is lit."),
        ("sentence", "It is a very long line that is wrapped."),
        ("sentence", "Yes."),
    ]
    assert [str(document.place(s.start)) for s in iter_sentences(document)][-1] == "paragraph 2"
    assert document.span(0, 3) is None
    check(document)


def test_parts_are_decoded_and_attachments_are_ignored(tmp_path: Path) -> None:
    document = read(tmp_path, "a.eml", MULTIPART)
    assert shown(document) == [("sentence", "Plain text."), ("sentence", "Only HTML.")]
    check(document)


def test_mailbox_has_one_part_per_message(tmp_path: Path) -> None:
    separator = "From jane@example.org Mon Jan  5 10:00:00 2026\n"
    source = f"{separator}{PLAIN}\n{separator}{MULTIPART}\n{separator}Subject: Third\n\n>From me.\n"
    document = read(tmp_path, "a.mbox", source)
    assert [(part.id, part.title, part.row) for part in document.parts] == [
        ("1@example.org", "Lamps é", 1),
        ("", "Parts", 2),
        ("", "Third", 3),
    ]
    sentences = list(iter_sentences(document))
    assert [s.heading for s in sentences] == ["Lamps é"] * 3 + ["Parts"] * 2 + ["Third"]
    assert str(document.place(sentences[-1].start)) == "message 3"
    assert shown(document)[-1] == ("sentence", "From me.")
    check(document)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Text.\n\n-----Original Message-----\nFrom: a\n\nOld.", "Text."),
        ("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\nText.\n"
         "-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----", "Text."),
        ("John Doe wrote:\n\n> quoted\n\nReply.", "Reply."),
        ("Hi Ann,\n\n LK> quoted\n LK> more\n\nReply.\n\n-Carl", "Reply."),
        ("Excerpts from Ann's message of Mon May 4 10:00:\n> quoted\n\nReply.\n\n-ann", "Reply."),
        ("Reply.\n\nCheers,\n\n\n---\n[1] Note.", "Reply. | [1] Note."),
        ("Reply.\n\nThanks,\n\n> quoted", "Reply."),
        ("Reply.\n\n-Carl\n\nPS. One more thing.", "Reply. | PS. One more thing."),
        ("> quoted\n\nDear Ann,\n\nReply.\n\nBest regards,", "Reply."),
        ("> Is it?\n\nYes.", "Yes."),
        ("Whether it is named\n\n  [PATCH] a: b\n\ndoes not matter.",
         "Whether it is named\n  [PATCH] a: b\ndoes not matter."),
        ("> Is it?\n\nIndeed", "Indeed"),
        ("Reply.\n\t\t\tBob", "Reply."),
        ("Reply.\n\nbob\nRemember the lamp", "Reply."),
        ("Rob <r@s.org> wrote on 06/25/2010 04:05 PM:\n\nReply.", "Reply."),
        ("At Sun, 14 Nov 2010 19:05:02 -0800,\nAnn Lee wrote:\n> quoted\n\nReply.", "Reply."),
        ("> A quote whose lines were wrapped by the mail program that sent them to\n"
         "Robert\n> and that goes on.\n\nReply.", "Reply."),
        ("> Is it a lamp of the kind that is lit at dusk and put out by noon?\n"
         "It is.\n> And the other?\nIt too.", "It is. | It too."),
        ("Reply.\n\nSigned-off-by: A B <a@b.c>\nAcked By: C <d@e.f>\nCc: x <y@z.org>\n\n"
         "Thanks,\nAnn Lee", "Reply."),
    ],
)  # fmt: skip
def test_what_is_not_own_text(tmp_path: Path, body: str, text: str) -> None:
    document = read(tmp_path, "a.eml", f"From: Robert 'Bob' Roe <rr@s.org>\nSubject: x\n\n{body}\n")
    assert " | ".join(found for _, found in shown(document)) == text


def test_a_patch_is_code_and_its_subject_is_its_text(tmp_path: Path) -> None:
    patch = "---\n a.c |  2 +-\n 1 file changed\n\ndiff --git a/a.c b/a.c\n+x;\n"
    source = f"Subject: Re: [PATCH 1/2] Sort the lamps by age\n\nAcked-by: A <a@b.c>\n{patch}"
    (text, kind), *code = [(text, kind) for kind, text in shown(read(tmp_path, "a.eml", source))]
    assert (text, kind) == ("Sort the lamps by age", "sentence")
    assert {kind for _, kind in code} == {"code"}
    source = f"Subject: x\n\nIt sorts.\n\n{patch.replace('---', '--- ', 1)[5:]}"
    assert [kind for kind, _ in shown(read(tmp_path, "b.eml", source))] == ["sentence", "code"]


def test_a_program_in_a_message_is_code(tmp_path: Path) -> None:
    source = "Subject: x\n\nWrite it so:\n\nenum kind {\n\n\tfixed = 0,\n\tlow = 1,\n};\n"
    kinds = [kind for kind, _ in shown(read(tmp_path, "a.eml", source))]
    assert kinds == ["sentence", "code", "code"]


def test_a_command_below_a_colon_is_code(tmp_path: Path) -> None:
    source = "Subject: x\n\nFor example:\n\n  lamp search oil\n\nOr not:\n\n  - A point\n\n$ lamp\n"
    kinds = [kind for kind, _ in shown(read(tmp_path, "a.eml", source))]
    assert kinds == ["sentence", "code", "sentence", "sentence", "code"]


def test_the_output_of_a_compiler_is_code(tmp_path: Path) -> None:
    source = "Subject: x\n\nIt says:\n\na.c: In function 'f':\na.c:8: error: 'x' undeclared\n"
    kinds = [kind for kind, _ in shown(read(tmp_path, "a.eml", source))]
    assert kinds == ["sentence", "code"]


@pytest.mark.parametrize(
    "code",
    [
        "#!/bin/sh\necho Light the lamp. > log\nlamp on",
        "Jane Doe (2):\n      Add a lamp\n      Light it",
        "The lamp is out.\nThe lamp is out.\nThe lamp is out.",
        "Feb 13 17:12:22 tower lampd: The lamp is lit\nFeb 13 17:12:23 tower lampd: The oil is low",
        "error: no lamp was declared in this scope",
    ],
    ids=["script", "shortlog", "repeated", "log", "error"],
)
def test_what_programs_write_is_code(tmp_path: Path, code: str) -> None:
    source = f"Subject: x\n\nIt is so.\n\n{code}\n\nIt is not.\n"
    kinds = [kind for kind, _ in shown(read(tmp_path, "a.eml", source))]
    assert kinds == ["sentence", "code", "sentence"]


def test_the_marks_of_plain_lists_are_left_out(tmp_path: Path) -> None:
    source = "Subject: x\n\nIt has these:\n\n- A lamp\n- Oil - a lot\n\n-3 degrees is cold.\n"
    assert [text for _, text in shown(read(tmp_path, "a.eml", source))] == [
        *("It has these:", "A lamp", "Oil - a lot", "-3 degrees is cold."),
    ]


def test_unknown_charset_is_read(tmp_path: Path) -> None:
    source = b"Content-Type: text/plain; charset=unknown-8bit\n\nCaf\xe9 text.\n"
    assert shown(read(tmp_path, "a.eml", source)) == [("sentence", "Café text.")]


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["> a\n", "On a wrote:\n", "\n", "From a 10:00\n\n", "a: b\n"])
def test_time_is_linear_in_length(piece: str) -> None:
    def seconds(length: int) -> float:
        start = time.process_time()
        read_mail(b"Subject: x\n\n" + piece.encode() * (length // len(piece)))
        return time.process_time() - start

    short, long = seconds(50_000), seconds(100_000)
    assert long < 3 * short + 0.2


def test_a_very_long_header_takes_little_time() -> None:
    source = "Subject: " + "\t> =?utf-8?q?" * 20_000 + "\n\nThe lamp is lit.\n"
    start = time.process_time()
    assert read_mail(source.encode()).text.strip() == "The lamp is lit."
    assert time.process_time() - start < 2


def test_a_separator_of_many_times_takes_linear_time() -> None:
    start = time.process_time()
    read_mail(b"From " + b"12:34" * 20_000 + b"\rx\n\nThe lamp is lit.\n")
    assert time.process_time() - start < 2


PATCH = """\
Subject: [PATCH] Light the lamp

The lamp was never lit. This lights it.

---
 lib/lamp.c | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/lib/lamp.c b/lib/lamp.c
--- a/lib/lamp.c
+++ b/lib/lamp.c
@@ -1,3 +1,3 @@
-    light (lamp, OFF);
+    light (lamp, ON);
"""


@pytest.mark.parametrize("start", ["---\n lib", "diff --git", "--- a/lib", "@@ -1"])
def test_a_patch_is_code_and_no_sentence(tmp_path: Path, start: str) -> None:
    header, _, body = PATCH.partition("\n\n")
    prose = body[: body.index("---")]
    message = f"{header}\n\n{prose}{body[body.index(start) :]}"
    document = read(tmp_path, "patch.eml", message)
    kinds = shown(document)
    sentences = [text for kind, text in kinds if kind == "sentence"]
    assert sentences == ["The lamp was never lit.", "This lights it."]
    assert any(kind == "code" and "light (lamp, ON);" in text for kind, text in kinds)


def test_a_rule_of_dashes_is_no_patch(tmp_path: Path) -> None:
    document = read(tmp_path, "rule.eml", "Subject: Rule\n\nIt is lit.\n\n---\n\nIt shines.\n")
    sentences = [text for _, text in shown(document)]
    assert {"It is lit.", "It shines."} <= set(sentences)
