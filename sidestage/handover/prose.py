"""What of an agent's Markdown is its own prose, in blocks.

Code, block quotes, quotations and addresses are somebody else's words: what they ask,
the agent does not. Pure and forgiving: every text has blocks, none raises.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

STAND_IN: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands where inline code, a quotation or an address stood."""

# A fence may stand in a list item. What closes it is at least as long.
_FENCE = re.compile(r"\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(`{3,}|~{3,})")
_BLOCK_QUOTE = re.compile(r"\s{0,3}>")
_RULE = re.compile(r"\s*(?:-\s?){3,}$|\s*(?:\*\s?){3,}$|\s*(?:_\s?){3,}$")
_ITEM = re.compile(
    r"\s*\||\s*[*_]{0,3}(?:[-*+•·‣–—]|\(?\d{1,3}[.):、）]|\(?[A-Za-z][.)）、])[*_]{0,3}"
    r"(?:\s|$|(?=[^\x00-\x7f]))"
)
_INDENTED = re.compile(r"(?: {2,}|\t)\S")
_CODE_INDENT = re.compile(r"(?: {4}|\t)")
_INLINE = (
    re.compile(r"(`{1,2})[^`\n]+\1"),
    re.compile(r"!?\[[^\[\]\n]{0,200}\]\([^()\s]{0,1000}\)"),
    re.compile(r"https?://[^\s?？)\]>]+(?:\?[^\s?？)\]>]+)*"),
)
# Bounded, so that a text full of opening ones takes no longer than another.
_QUOTATIONS = re.compile(
    r'"[^"\n]{1,300}"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»'
    r"|‹[^›\n]{1,300}›|「[^」\n]{1,300}」|『[^』\n]{1,300}』"
)
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph's prose on one line, or a list or table with a line an item."""

    lines: tuple[str, ...]
    is_list: bool

    @property
    def text(self) -> str:
        """All of it on one line."""
        return " ".join(self.lines)


def parse_blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks of *text*, without what others say in it."""
    blocks: list[Block] = []
    for paragraph in _paragraphs(text.replace("\r\n", "\n").replace("\r", "\n")):
        follows_list = bool(blocks) and blocks[-1].is_list
        if not follows_list and all(map(_CODE_INDENT.match, paragraph)):
            continue
        blocks.extend(_split(paragraph, follows_list=follows_list))
    return tuple(blocks)


def _paragraphs(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in _without_fences(text.split("\n")):
        if not line.strip() or _BLOCK_QUOTE.match(line) or _RULE.match(line):
            if lines:
                yield lines
            lines = []
        else:
            lines.append(line)
    if lines:
        yield lines


def _without_fences(lines: Iterable[str]) -> Iterator[str]:
    """Yield *lines*, an empty one for each of a fenced block's, closed or not."""
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if not fence:
            fence = found[1] if found else ""
            yield "" if found else line
            continue
        if found and found[1].startswith(fence) and line.strip() == found[1]:
            fence = ""
        yield ""


def _split(paragraph: list[str], *, follows_list: bool) -> Iterator[Block]:
    """Yield the runs of prose and of list items in *paragraph*, in order."""
    run: list[str] = []
    in_list = follows_list
    for line in paragraph:
        is_item = _ITEM.match(line) is not None or (
            in_list and _INDENTED.match(line) is not None
        )
        if run and is_item is not in_list:
            yield _block(run, is_list=in_list)
            run = []
        in_list = is_item
        run.append(line)
    yield _block(run, is_list=in_list)


def _block(lines: list[str], *, is_list: bool) -> Block:
    return Block(tuple(map(_own_words, lines)), is_list)


def _own_words(line: str) -> str:
    line = line.strip().lstrip("#").strip()
    for code in _INLINE:
        line = code.sub(STAND_IN, line)
    without = _QUOTATIONS.sub(STAND_IN, line)
    # A line that is nothing but a quotation is how some agents speak.
    return without if _WORD.search(without) else line
