"""
The words that decide whether a full stop ends a sentence, in English and French.

All lower case and without their last full stop. Abbreviations made of dotted letters (`U.S.`,
`a.m.`) and initials need no entry.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["ABBREVIATIONS", "SENTENCE_STARTS"]

Kind = Literal["never", "maybe", "name", "number"]

# A name or an explanation follows, so the sentence goes on whatever comes next.
_NEVER = """
    mr mrs ms dr prof gen col sgt capt cpt lt rev hon sen rep gov pres brig adm maj cmdr cpl pvt
    supt messrs mx ss e.g i.e cf viz vs mm mme mmes mlle mlles mgr mtre
"""
# They may stand last: the sentence ends where the next word is one that starts sentences.
_MAYBE = """
    inc ltd corp co cos bros llc plc jr sr esq etc al st mt ft ste ave blvd rd dept univ assn
    approx ca var subsp ssp spp sp lat ed eds orig repr pl syn incl excl misc lb lbs hr hrs yr
    yrs tel ext ibid chap ch sect eq eqs pp pt pts jan feb apr jun jul aug sep oct nov dec geo
    wm chas thos jas anon pseud pg eg ie av ap env éd réf janv févr avr juil déc
"""
# Names that bring a mark of their own: `Yahoo! Mail`.
_NAME = "yahoo jeopardy"
# Words of their own, and abbreviations only where a number follows.
_NUMBER = "no nos art arts fig figs vol vols sec par vers op nr mar sept tome"

ABBREVIATIONS: dict[str, Kind] = {
    **dict.fromkeys(_NEVER.split(), "never"),
    **dict.fromkeys(_MAYBE.split(), "maybe"),
    **dict.fromkeys(_NAME.split(), "name"),
    **dict.fromkeys(_NUMBER.split(), "number"),
}

SENTENCE_STARTS = frozenset(
    """
    a an the this that these those he she it they we you i his her its their our my your who
    what when where why how which in on at by for from with as after before during while since
    although though however but and if there then some many most all both each every another
    other others several one two three no not also thus such because until under over between
    among through throughout despite unlike like to of according following today later early now
    only once even so yet or here instead meanwhile moreover furthermore additionally
    le la les un une des du il elle ils elles on ce cet cette ces cela en dans au aux à pour par
    sur avec selon après avant lors lorsque depuis mais et donc si son sa ses leur leurs nous
    vous je qui que quand comme plus pendant ainsi sous entre
    """.split()
)
"""Words that, with a capital, more often than not start a sentence."""
