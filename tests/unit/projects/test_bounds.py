"""What may be a project, and how a swapped folder is noticed."""

from pathlib import Path

import pytest

from sidestage.errors import ProjectChanged, ProjectFolderMissing, ProjectTooWide
from sidestage.projects.bounds import (
    Bounds,
    FolderIdentity,
    check_project,
    look_at_folder,
)

BOUNDS = Bounds(
    home=Path("/home/ada"),
    state_dir=Path("/srv/sidestage"),
    agent_dirs=(Path("/home/ada/.claude"), Path("/srv/accounts/claude")),
)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/home",
        "/home/ada",
        "/srv",
        "/srv/sidestage",
        "/srv/sidestage/terminals/1",
        "/srv/accounts",
        "/srv/accounts/claude",
        "/srv/accounts/claude/projects",
        "/home/ada/.claude",
        "/home/ada/.claude/commands",
        "/home/ada/.ssh",
        "/home/ada/.config/nvim",
        "/home/ada/.local",
        # Whole folders of the system were taken, `/tmp` with its sockets among them.
        "/tmp",
        "/var",
        "/usr",
        "/etc",
        "/proc",
        "/run",
    ],
)
def test_a_folder_that_holds_or_lies_in_private_ones_is_too_wide(path: str) -> None:
    with pytest.raises(ProjectTooWide):
        BOUNDS.check(Path(path))


@pytest.mark.parametrize(
    "path",
    [
        "/home/ada/work",
        "/home/ada/code/.hidden",
        "/home/adam",
        "/home/ada2/.ssh",
        "/srv/sidestage2",
        "/srv/accounts/claude2",
        "/opt/project",
        "/tmp/x",
        "/var/www/site",
        "/usr/src/linux",
    ],
)
def test_other_folders_may_be_projects_even_with_a_like_name(path: str) -> None:
    BOUNDS.check(Path(path))


def test_links_in_the_bounds_themselves_are_resolved(tmp_path: Path) -> None:
    real = tmp_path / "disk/ada"
    real.mkdir(parents=True)
    (tmp_path / "home").symlink_to(real)
    bounds = Bounds.of(
        home=tmp_path / "home",
        state_dir=tmp_path / "home/.state",
        agent_dirs=(tmp_path / "home/.claude",),
    )
    with pytest.raises(ProjectTooWide):
        bounds.check(real.resolve())


def test_the_registered_folder_is_accepted(tmp_path: Path) -> None:
    status = tmp_path.stat()
    check_project(str(tmp_path.resolve()), status.st_dev, status.st_ino)


def test_a_folder_that_is_gone_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ProjectFolderMissing, match="no folder at"):
        check_project(str(tmp_path / "gone"), 1, 2)


def test_a_file_in_its_place_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "project"
    path.write_text("")
    status = path.stat()
    with pytest.raises(ProjectFolderMissing):
        check_project(str(path), status.st_dev, status.st_ino)


def test_a_project_swapped_for_a_link_has_changed(tmp_path: Path) -> None:
    """Bubblewrap follows a link, so ~/.ssh would have gone into the sandbox."""
    root = tmp_path.resolve()
    project, keys = root / "project", root / "keys"
    project.mkdir()
    keys.mkdir()
    status = project.stat()
    project.rmdir()
    project.symlink_to(keys)
    with pytest.raises(ProjectChanged, match="not the one that was registered"):
        check_project(str(project), status.st_dev, status.st_ino)


def test_a_link_to_the_very_folder_has_changed_too(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    project = root / "project"
    project.mkdir()
    status = project.stat()
    project.rename(root / "moved")
    project.symlink_to(root / "moved")
    with pytest.raises(ProjectChanged):
        check_project(str(project), status.st_dev, status.st_ino)


@pytest.mark.parametrize(("device", "inode"), [(2, 20), (1, 21)])
def test_another_folder_at_the_path_has_changed(device: int, inode: int) -> None:
    there = FolderIdentity("/p", device, inode, is_folder=True)
    with pytest.raises(ProjectChanged):
        check_project("/p", 1, 20, look=lambda _: there)


def test_links_in_a_circle_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert look_at_folder(str(tmp_path / "a")) is None
