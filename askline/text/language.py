"""
The language of a text, from its script and its most frequent words.

It is meant to choose a model, so it is cautious: a text is English unless another language clearly
has more of its function words. A few hundred characters are enough, and a question alone mostly is.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from .words import split_words

__all__ = ["LANGUAGE_NAMES", "detect_language"]

LANGUAGE_NAMES = {
    "ar": "Arabic",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pt": "Portuguese",
    "ru": "Russian",
    "th": "Thai",
    "zh": "Chinese",
}
"""The languages that are told apart, by their ISO 639-1 codes."""

# Words that make up most of a text, question words included. A word of several languages counts for
# each of them, so that it decides nothing.
_FUNCTION_WORDS = {
    "en": """the of and to in is was for on that with as by it at from are be this an which or his
        were not have has had but they you what who when where how why did does do its their he she
        we can will would there been if no all one about after into than more other a i""",
    "fr": """le la les de des du un une et à a en est que qui dans pour par sur pas au aux ce cette
        ces il elle ils elles son sa ses leur leurs ne se plus avec sont été était ont mais ou où
        comme quel quelle quels quelles quand comment combien pourquoi quoi qu l d c n s j dont
        après entre nous vous on y je être fut fait aussi sous selon lors si""",
    "de": """der die das und in den von zu mit ist des im auf für nicht ein eine einer eines dem als
        auch es an werden aus er hat dass sie nach wird bei um am sind noch wie einem über einen so
        zum war haben nur oder aber vor zur bis mehr durch man sein wer was wann wo warum welche
        welcher wurde ich""",
    "es": """el la los las de del y a en que es un una por con para se no su al lo como más o pero
        sus le ha me si sin sobre este esta entre cuando muy también fue hasta desde están era son
        qué quién cuándo dónde cómo cuál por qué cuántos yo""",
    "it": """il lo la i gli le di del della dei delle e a in che è un una per con non si da al nel
        nella sono come più o ma se dal anche alla su suo sua loro questo questa ha stato era chi
        cosa quando dove perché quale quanti io""",
    "pt": """o a os as de do da dos das e em que é um uma por com para se não no na nos nas ao como
        mais ou mas foi sua seu pelo pela são também ser tem quando muito já quem onde qual quais
        porque eu""",
    "nl": """de het een en van in is dat op te met voor niet zijn aan er om ook als bij uit door
        naar maar was wordt werd over tot dan nog hun heeft hebben deze die wie wat wanneer waar hoe
        waarom welke ik""",
}
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _code, _words in _FUNCTION_WORDS.items():
    for _word in dict.fromkeys(_words.split()):
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _code)
# By the first word of the Unicode name of a letter.
_SCRIPTS = {
    "ARABIC": "ar",
    "CJK": "zh",
    "CYRILLIC": "ru",
    "DEVANAGARI": "hi",
    "GREEK": "el",
    "HANGUL": "ko",
    "HEBREW": "he",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "THAI": "th",
}
_JAPANESE_SHARE = 0.1  # of kana among the letters: Japanese text also has Chinese characters
_MAX_CHARACTERS = 2000
_MAX_TEXT_CHARACTERS = 300  # of one text, so that several are read
_MIN_WORDS = 2
"""Function words that a language other than English must have at least."""
_MIN_SHARE = 0.15
"""Of them among all words: running text has 0.3 to 0.5."""
_MARGIN = 1.5
"""Times as many as English must be found."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def detect_language(texts: Iterable[str]) -> str:
    """
    The ISO 639-1 code of the language that most of the texts are in, `en` if it is not clear.

    At most 2,000 characters are read, 300 of each text. A language that is not in `LANGUAGE_NAMES`
    is taken for a related one or for English.
    """
    parts = _first_characters(texts)
    text = "".join(parts)
    if not text.isascii() and (script := _foreign_script(text)):
        return script
    # Names repeat their words (La La Land), so each word of a text counts once.
    words = [word for part in parts for word in set(split_words(part))]
    function_words = filter(_LANGUAGES_OF.__contains__, words)
    found = Counter(code for word in function_words for code in _LANGUAGES_OF[word])
    if not found:
        return "en"
    code, count = max(found.items(), key=lambda item: (item[1], item[0] == "en"))
    is_clear = count >= max(_MIN_WORDS, _MIN_SHARE * len(words), _MARGIN * found["en"])
    return code if is_clear else "en"


def _first_characters(texts: Iterable[str]) -> list[str]:
    parts, room = list[str](), _MAX_CHARACTERS
    for text in texts:
        parts.append(text[: min(room, _MAX_TEXT_CHARACTERS)])
        room -= len(parts[-1])
        if room <= 0:
            break
    return parts


def _foreign_script(text: str) -> str:
    """The language of the script of more than half of the letters; empty if it is Latin."""
    letters = [one for one in _NOT_ASCII.findall(text) if one.isalpha()]
    scripts = Counter(_SCRIPTS.get(unicodedata.name(one, "?").split()[0], "") for one in letters)
    del scripts[""]
    if not scripts:
        return ""
    total = sum(one.isalpha() for one in text)
    if 2 * sum(scripts.values()) <= total:
        return ""
    if scripts["ja"] >= _JAPANESE_SHARE * total:
        return "ja"
    return scripts.most_common(1)[0][0]
