"""`sidestage open`: the page that leads to the link is its owner's alone."""

import stat
from pathlib import Path

from sidestage.command.open import write_page


def test_the_page_with_the_link_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    page = tmp_path / "open.html"
    write_page(page, "http://127.0.0.1:8787/#ticket=a&b")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "#ticket=a&amp;b" in page.read_text()


def test_a_link_in_the_pages_place_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    page = tmp_path / "open.html"
    page.symlink_to(elsewhere)
    write_page(page, "http://127.0.0.1:8787/#ticket=x")
    assert elsewhere.read_text() == "kept"
    assert not page.is_symlink()
