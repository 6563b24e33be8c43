"""A project's folders are held open while its sandbox is made."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from sidestage.errors import ProjectChanged, ProjectFolderMissing
from sidestage.terminals.model import SandboxProfile
from terminal_host.host import sandbox_project
from terminal_host.host.sandbox_project import ProjectMount, hold_mounts, list_mounts


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / ".git/hooks").mkdir(parents=True)
    (folder / ".claude").mkdir()
    return folder


def profile_of(project: Path, *, read_only: bool = False) -> SandboxProfile:
    return SandboxProfile(
        project=project,
        project_read_only=read_only,
        home=Path("/home/dev"),
        state_dir=Path("/state"),
        program_dirs=(),
        agent=None,
    )


def test_open_folders_are_what_bubblewrap_gets(project: Path) -> None:
    with ExitStack() as stack:
        mounts = hold_mounts(profile_of(project), stack)
        assert [(mount.folder, mount.writable) for mount in mounts] == [
            (project, True),
            (project / ".claude", False),
            (project / ".git", True),
            (project / ".git/hooks", False),
        ]
        for mount in mounts:
            assert mount.descriptor is not None
            assert os.get_inheritable(mount.descriptor)
            assert os.fstat(mount.descriptor).st_ino == mount.folder.stat().st_ino
            kind = "--bind-fd" if mount.writable else "--ro-bind-fd"
            assert mount.options() == (kind, str(mount.descriptor), str(mount.folder))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(mounts[0].descriptor or -1)


def test_a_read_only_project_is_one_mount(project: Path) -> None:
    assert list_mounts(profile_of(project, read_only=True)) == (
        ProjectMount(project, writable=False),
    )


def test_a_folder_swapped_for_a_link_after_the_look_is_left_out(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in another terminal of the project could have shown itself ~/.ssh."""
    keys = tmp_path / "keys"
    (keys / "hooks").mkdir(parents=True)
    found = list_mounts(profile_of(project))
    (project / ".git").rename(project / "old")
    (project / ".git").symlink_to(keys)
    monkeypatch.setattr(sandbox_project, "list_mounts", lambda _: found)
    with ExitStack() as stack:
        mounts = hold_mounts(profile_of(project), stack)
        folders = [mount.folder.name for mount in mounts]
    assert folders == ["project", ".claude"]


def test_a_project_behind_a_link_is_refused(project: Path) -> None:
    project.rename(project.with_name("moved"))
    project.symlink_to(project.with_name("moved"))
    with ExitStack() as stack, pytest.raises(ProjectChanged, match="through a link"):
        hold_mounts(profile_of(project), stack)


def test_a_link_above_the_project_is_noticed_as_well(project: Path) -> None:
    above = project.parent / "above"
    above.symlink_to(project.parent)
    with ExitStack() as stack, pytest.raises(ProjectChanged):
        hold_mounts(profile_of(above / "project"), stack)


def test_a_project_that_is_gone_is_missing(project: Path) -> None:
    with ExitStack() as stack, pytest.raises(ProjectFolderMissing):
        hold_mounts(profile_of(project / "gone"), stack)
