"""Whether the last message of a turn asks the person something, in free form.

The rules, in order (a false alarm can be dismissed, a missed question costs a wait):

1. Nothing, and nothing longer than `TEXT_LIMIT_CHARACTERS`, asks.
2. Code (fenced, even if unclosed, indented or inline), block quotes, quotations and
   addresses are not the agent's words and are taken out (`sidestage.handover.prose`).
3. What counts is the final paragraph. Looking for it, a closing courtesy ("let me
   know if you need anything else", "thanks"), a short parenthesis and a list are passed
   over; so is a second thought ("I'd recommend the first"), but only to reach a
   question that is put to the reader.
4. It asks if it ends in a question mark of any script. Closing quotes, brackets,
   emphasis, an emoji and a short parenthesis may follow. Not if the question wants only
   a nod ("neat, right?"), nor if it stands before a list and is one that its writer
   answers there ("What changed?").
5. It asks if a list or code follows a line that asks ("Should I:").
6. It asks if it holds a question put to the reader ("Should I …?", "Which …?") that the
   next sentence does not answer.
7. It asks if it holds a precise request: "please confirm", "let me know which", "try it
   and tell me", and their like in other languages (`sidestage.handover.phrases`).
   Offers and courtesies ("let me know if you want more") are none, nor is what is
   negated ("no need to confirm").
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from sidestage.handover.phrases import load_phrases
from sidestage.handover.prose import STAND_IN, parse_blocks

TEXT_LIMIT_CHARACTERS: Final = 8_000
"""A longer message is a report; nobody answers it from a phone's notification."""
_PARENTHESIS_LIMIT_CHARACTERS: Final = 40
_END_CHARACTERS: Final = 200
"""Enough to see how a text ends, whatever decorates it."""

_MARKS: Final = "?？؟⁇⁈⁉‽⸮\N{GREEK QUESTION MARK}፧"
_SENTENCE_END: Final = re.compile(rf"(?<=[.!…।{_MARKS}][\s)\]*_\"”’])|(?<=[。！？])")
_PARENTHESIS: Final = re.compile(
    rf"\s*(?:\([^()]{{0,{_PARENTHESIS_LIMIT_CHARACTERS}}}\)"
    rf"|（[^（）]{{0,{_PARENTHESIS_LIMIT_CHARACTERS}}}）"
    rf"|\[[^\[\]]{{0,{_PARENTHESIS_LIMIT_CHARACTERS}}}\])\s*$"
)
_CLOSERS: Final = " \t\\*_~`\"'”’»›」』)]}）】!！"
_GREEK: Final = re.compile("[\u0370-\u03ff]")


def is_free_form_question(text: str) -> bool:
    """Tell whether *text*, an agent's last message, asks the person something."""
    if len(text) > TEXT_LIMIT_CHARACTERS:
        return False
    has_list = is_after_thought = False
    for block in reversed(parse_blocks(text.replace("’", "'"))):
        if block.is_list:
            if _ends_in_mark(block.lines[-1]) and not is_after_thought:
                return True
            has_list = True
        elif _is_afterthought(block.text):
            is_after_thought = True
        elif not _says_nothing(block.text):
            return _asks(block.text, has_list=has_list, open_only=is_after_thought)
    return False


def _asks(text: str, *, has_list: bool, open_only: bool) -> bool:
    sentences = _sentences(text)
    if any(map(_requests, sentences)) or _has_open_question(sentences):
        return True
    if open_only:
        return False
    if load_phrases().lead.search(text):
        return True
    if has_list and load_phrases().self_asked.search(sentences[-1]):
        return False
    return _ends_in_mark(text) and not load_phrases().tag.search(
        _bare(sentences[-1]).rstrip(_MARKS)
    )


def _says_nothing(text: str) -> bool:
    """Tell whether *text* only closes, names a list, or is a short parenthesis."""
    if load_phrases().label.search(text) or not any(map(str.isalnum, text)):
        return True
    if _PARENTHESIS.fullmatch(text) and not _ends_in_mark(text):
        return True
    return all(map(load_phrases().courtesy.search, _sentences(text)))


def _is_afterthought(text: str) -> bool:
    sentences = _sentences(text)
    return (
        load_phrases().afterthought.search(text) is not None
        and not any(map(_requests, sentences))
        and not _ends_in_mark(text)
    )


def _requests(sentence: str) -> bool:
    return (
        load_phrases().cue.search(sentence) is not None
        and load_phrases().courtesy.search(sentence) is None
        and load_phrases().negation.search(sentence) is None
    )


def _has_open_question(sentences: Sequence[str]) -> bool:
    """Tell whether one is put to the reader and the next one does not answer it."""
    for sentence, following in zip(sentences, [*sentences[1:], ""], strict=True):
        if (
            _ends_in_mark(sentence)
            and load_phrases().directed.search(sentence)
            and not load_phrases().self_asked.search(sentence)
            and not load_phrases().courtesy.search(sentence)
            and not load_phrases().answer.search(following)
        ):
            return True
    return False


def _sentences(text: str) -> list[str]:
    parts = (part.strip().lstrip("*_ ") for part in _SENTENCE_END.split(text))
    return [part for part in parts if any(map(str.isalnum, part))] or [text]


def _ends_in_mark(text: str) -> bool:
    bare = _bare(text)
    if bare.endswith(tuple(_MARKS)):
        return True
    # Greek asks with a semicolon.
    return bare.endswith(";") and _GREEK.search(bare) is not None


def _bare(text: str) -> str:
    """Return the end of *text*, without what may follow its last mark."""
    text = text[-_END_CHARACTERS:]
    while True:
        shorter = text.rstrip(_CLOSERS)
        found = _PARENTHESIS.search(text)
        if found and found.start() and not any(m in found[0] for m in _MARKS):
            shorter = text[: found.start()]
        elif shorter == text and text and _is_picture(text[-1]):
            shorter = text[:-1]
        if shorter == text:
            return text
        text = shorter


def _is_picture(character: str) -> bool:
    return character != STAND_IN and (
        character == "\N{VARIATION SELECTOR-16}"
        or unicodedata.category(character) in {"So", "Sk", "Cf"}
    )
