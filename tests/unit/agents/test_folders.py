from pathlib import Path

from sidestage.agents.folders import Folder, look_at_folders


def test_a_folder_is_resolved_once_and_stays_so(tmp_path: Path) -> None:
    one, two, link = tmp_path / "one", tmp_path / "two", tmp_path / "link"
    one.mkdir()
    two.mkdir()
    link.symlink_to(one)
    known = look_at_folders([str(link)], {})
    assert known[str(link)] == Folder(str(one), exists=True)
    link.unlink()
    link.symlink_to(two)
    assert look_at_folders([str(link)], known) == known
    one.rmdir()
    gone = look_at_folders([str(link)], known)
    assert gone[str(link)] == Folder(str(one), exists=False)


def test_what_is_no_folder_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    odd = "/" + "x" * 5000
    seen = look_at_folders([str(file), "/not/there", odd, "nul\0"], {})
    assert not any(folder.exists for folder in seen.values())
