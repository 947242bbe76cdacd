from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from askline.text.readers.text_encoding import decode

from .samples import originals, read, refusal

FRENCH = "Le fleuve prend sa source près de l'étang. Il traverse la forêt où l'on récoltait jadis."
POLISH = "Wieża ciśnień została zbudowana w środku miasta. Później przebudowano ją na muzeum."
RUSSIAN = (
    "Железная дорога была открыта в начале века. "
    "Она проходит через восемь часовых поясов и соединяет столицу с океаном."
)
JAPANESE = "鉄道は二十世紀の初めに開通した。首都と海を結び、八つの時間帯を通る。"


@pytest.mark.parametrize(
    ("text", "codec", "expected"),
    [
        (FRENCH, "utf-8", "utf-8"),
        (FRENCH, "utf-8-sig", "utf-8-sig"),
        (FRENCH, "utf-16", "utf-16"),
        (FRENCH, "utf-32", "utf-32"),
        (FRENCH, "latin-1", "cp1252"),
        ("Café fermé.", "latin-1", "cp1252"),
        (POLISH, "cp1250", "cp1250"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8-r", "koi8_r"),
        (JAPANESE, "shift_jis", "cp932"),
    ],
)
def test_encoding_is_detected(tmp_path: Path, text: str, codec: str, expected: str) -> None:
    document = read(tmp_path, "a.txt", text.encode(codec))
    assert (document.text, document.encoding) == (text, expected)
    assert "".join(originals(document)) == text.replace(". ", ".")


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Le jardin partagé a été créé par Mme Lefèvre. L'adhésion coûte 35 €.", "cp1252"),
        ("La città è più grande di così. Perché non può venire?", "cp1252"),
        ("The naïve café owner paid £4 for the crème brûlée: “free”, he said.", "cp1252"),
        ("Hästen åt höet på ängen. Är du säker på att båten går?", "cp1252"),
        ("A szűrőt minden évben cserélni kell, különben elromlik.", "cp1250"),
        ("Maşina albă a fost vândută în judeţul Braşov.", "cp1250"),
        ("Željeznička postaja je blizu, čekaonica je topla.", "cp1250"),
        ("Toplantı yarın başlayacak. Öğrenciler için giriş ücretsizdir.", "cp1254"),
        ("Rytoj posėdis prasidės dešimtą, įėjimas nemokamas.", "cp1257"),
    ],
)
def test_code_page_whose_letters_fit_one_language(text: str, codec: str) -> None:
    assert decode(text.encode(codec)) == (text, codec, ())


def test_damaged_bytes_of_utf8_are_replaced_and_reported(tmp_path: Path) -> None:
    content = "Tromsø liegt am Meer. Die Brücke ist alt.\n".encode() + b"Caf\xe9 noir.\n"
    document = read(tmp_path, "a.txt", content)
    assert document.text.endswith("Die Brücke ist alt.\nCaf\ufffd noir.\n")
    (problem,) = document.problems
    assert (problem.line, problem.message) == (
        2,
        "1 byte is not UTF-8 and read as \ufffd, 0xe9 first. Save it as UTF-8.",
    )
    # A few accents in ASCII text are another encoding, which has no damage.
    assert decode(b"Caf\xe9 noir, na\xefve.") == ("Café noir, naïve.", "cp1252", ())


def test_charset_declared_in_html_is_used(tmp_path: Path) -> None:
    page = '<meta charset="iso-8859-15"><p>10 €.'.encode("iso-8859-15")
    assert read(tmp_path, "a.html", page).text == "10 €.\n"
    assert "10" in read(tmp_path, "b.html", page.replace(b"iso-8859-15", b"base64")).text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "It is empty or has no text. Leave it out."),
        (
            b"text\0\0\1\2",
            "It contains binary data and no text. Leave it out or convert it.",
        ),
        (b"\1\2\3\4" * 9, "It contains binary data and no text."),
        (b"%PDF-1.4 text", "It contains a PDF and no text. Give it the suffix of its"),
        (
            b"PK\x03\x04 text",
            "It contains a zip archive or an office document and no text.",
        ),
        (
            codecs.BOM_UTF8 + b"\xff",
            "It has the byte-order mark of UTF-8, but its content is not UTF-8. Save it as",
        ),
        (b"a\n" + bytes(range(129, 160)), "2: Byte 0x81 at offset 2 is not UTF-8, and no other"),
    ],
    ids=["empty", "nul", "controls", "pdf", "zip", "broken-mark", "unknown-encoding"],
)
def test_unreadable_text_gives_the_reason(tmp_path: Path, content: bytes, message: str) -> None:
    assert refusal(tmp_path, "a.txt", content).startswith(message)


@pytest.mark.parametrize("codec", ["punycode", "idna", "unicode_escape", "utf-7", "base64"])
def test_codecs_that_are_not_character_encodings_are_ignored(codec: str) -> None:
    page = f'<meta charset="{codec}"><p>{FRENCH}</p>'
    assert decode(page.encode("cp1252"), use_declared=True) == (page, "cp1252", ())
