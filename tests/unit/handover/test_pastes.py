import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.handover.pastes import (
    PIECE_LIMIT_CHARACTERS,
    encode_pastes,
    unwrap_paste,
)
from tests.fakes.envelopes import EXAMPLES

BEGIN, END = "\x1b[200~", "\x1b[201~"


def pieces(text: str, *, cols: int = 100, rows: int = 30) -> list[str]:
    data = encode_pastes(text, cols=cols, rows=rows).decode()
    assert data.startswith(BEGIN)
    assert data.endswith(END)
    return data.removeprefix(BEGIN).removesuffix(END).split(END + BEGIN)


@given(st.text(alphabet="ab \n\t日", min_size=1, max_size=900))
@settings(max_examples=EXAMPLES)
def test_pieces_join_to_the_text_and_none_is_folded(text: str) -> None:
    parts = pieces(text, rows=2000)
    assert "".join(parts) == text
    for part in parts:
        assert part.count("\n") <= 1
        assert len(part) <= PIECE_LIMIT_CHARACTERS


def test_a_backslash_at_the_end_is_kept_by_a_space() -> None:
    assert pieces("a\\") == ["a\\ "]
    assert pieces("a\\b") == ["a\\b"]


@pytest.mark.parametrize("text", ["a\n" * 10 + "b", "x" * 3000, "日" * 1100])
def test_what_the_screen_cannot_show_goes_whole(text: str) -> None:
    assert pieces(text) == [text]
    assert len(pieces(text, rows=200)) > 1


@pytest.mark.parametrize(
    ("recorded", "text"),
    [
        ("plain", "plain"),
        ('\n\n<pasted_content id="1e59">\na\nb\n</pasted_content id="1e59">\n', "a\nb"),
        ('see <pasted_content id="1e59">', 'see <pasted_content id="1e59">'),
    ],
)
def test_a_folded_paste_is_known_again(recorded: str, text: str) -> None:
    assert unwrap_paste(recorded) == text
