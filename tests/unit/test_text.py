import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.text import clean_path, clean_text, shorten

CHARACTERS = st.characters(codec=None)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\x1b]52;c;eA==\x07b", "a\ufffd]52;c;eA==\ufffdb"),
        ("one\r\ntwo\rthree\tfour  five ", "one two three four five"),
        ("ltr\u202erlo\u2066iso", "ltr\ufffdrlo\ufffdiso"),
        ("line\u2028sep\u0085nel", "line\ufffdsep\ufffdnel"),
        ("lone\ud800surrogate", "lone\ufffdsurrogate"),
        ("漢字 é 👩‍💻", "漢字 é 👩‍💻"),
    ],
)
def test_one_line_shows_nothing_that_acts(text: str, cleaned: str) -> None:
    assert clean_text(text, multiline=False) == cleaned


def test_several_lines_keep_their_ends_and_tabs() -> None:
    assert clean_text("a\r\n\tb\rc\x00", multiline=True) == "a\n\tb\nc\ufffd"


def test_a_path_keeps_its_spaces() -> None:
    """A folder with two spaces in a row was shown, and then looked for, with one."""
    assert clean_path("/srv/a  b /c") == "/srv/a  b /c"
    assert clean_path("/srv/\x1b[31m\n") == "/srv/\ufffd[31m\ufffd"


@given(st.text(CHARACTERS))
def test_whatever_comes_can_be_encoded_and_cleaned_again(text: str) -> None:
    for cleaned in (
        clean_text(text, multiline=True),
        clean_text(text, multiline=False),
        clean_path(text),
    ):
        assert cleaned.encode().decode() == cleaned
        assert not set(cleaned) & set("\x00\x07\x1b\x7f\x9b\u202e")
    assert clean_path(clean_path(text)) == clean_path(text)


@given(st.text(), st.integers(1, 40))
def test_shortened_text_fits_and_says_that_it_was_cut(text: str, limit: int) -> None:
    cut = shorten(text, limit)
    assert len(cut) <= limit
    assert cut == text or cut.endswith("…")
