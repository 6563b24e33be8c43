from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.errors import (
    InvalidInput,
    ProjectExists,
    ProjectFolderMissing,
    ProjectNotFound,
    ProjectTooWide,
    SidestageError,
    TemplateNotFound,
)
from sidestage.ids import HostId, ProjectId, TemplateId
from sidestage.projects.model import Project
from sidestage.projects.registry import ProjectRegistry, contains
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAuditLog, SqlProjectStore

OWNER = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")
SHELL = TemplateId("template:shell")
TOO_WIDE = "wide"


def refuse_wide(path: Path) -> None:
    if path.name == TOO_WIDE:
        raise ProjectTooWide("Too wide.")


def make_registry(database: Database) -> ProjectRegistry:
    return ProjectRegistry(
        SqlProjectStore(database),
        host_id=HostId("host:1"),
        check_bounds=refuse_wide,
        templates=(SHELL,),
        clock=lambda: datetime(2026, 11, 30, tzinfo=UTC),
    )


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "sidestage.db")
    yield opened
    await opened.close()


@pytest.fixture
def registry(database: Database) -> ProjectRegistry:
    return make_registry(database)


async def register(
    registry: ProjectRegistry,
    path: Path | str,
    *,
    name: str | None = None,
    templates: tuple[TemplateId, ...] | None = None,
) -> Project:
    return await registry.register(
        str(path), name=name, read_only=False, templates=templates, actor=OWNER
    )


async def test_a_project_is_its_real_path(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    project = await register(registry, tmp_path / "link")
    assert project.path == str(folder)
    assert project.name == "real"
    assert project.inode == folder.stat().st_ino


async def test_a_project_survives_a_restart(
    registry: ProjectRegistry, database: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "漢 é_.v2"
    folder.mkdir()
    project = await register(registry, folder, templates=(SHELL,))
    again = make_registry(database)
    await again.load()
    assert again.feed.values() == (project,)


async def test_the_longest_project_wins_and_a_name_is_no_prefix(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    outer, inner = tmp_path / "a", tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    outer_project = await register(registry, outer)
    inner_project = await register(registry, inner)
    assert registry.find_for(str(inner / "deep")) == inner_project
    assert registry.find_for(str(inner)) == inner_project
    assert registry.find_for(str(outer / "bc")) == outer_project
    assert registry.find_for(str(tmp_path / "ab")) is None


@pytest.mark.parametrize(
    ("folder", "path", "inside"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b", "/a/b/c", True),
        ("/a/b", "/a/bc", False),
        ("/a/b", "/a", False),
        ("/", "/a", True),
    ],
)
def test_a_folder_contains_what_lies_below_it(
    folder: str, path: str, inside: bool
) -> None:
    assert contains(folder, path) is inside


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("relative", InvalidInput),
        ("", InvalidInput),
        ("/nul\0byte", InvalidInput),
        ("/lone\ud800surrogate", InvalidInput),
        ("/" + "x" * 5000, InvalidInput),
        ("/no/such/folder", ProjectFolderMissing),
        ("/dev/null", ProjectFolderMissing),
        ("/" + "x" * 300, ProjectFolderMissing),
    ],
)
async def test_a_path_that_is_no_folder_is_refused(
    registry: ProjectRegistry, path: str, error: type[SidestageError]
) -> None:
    with pytest.raises(error):
        await register(registry, path)
    assert registry.feed.values() == ()


async def test_a_folder_that_is_too_wide_is_refused(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    (tmp_path / TOO_WIDE).mkdir()
    with pytest.raises(ProjectTooWide):
        await register(registry, tmp_path / TOO_WIDE)


async def test_a_folder_is_registered_once(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    await register(registry, tmp_path)
    with pytest.raises(ProjectExists):
        await register(registry, f"{tmp_path}/.")


async def test_an_unknown_template_is_refused(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    with pytest.raises(TemplateNotFound):
        await register(registry, tmp_path, templates=(TemplateId("template:\x1b"),))


@pytest.mark.parametrize("name", ["", " \n ", "x" * 65])
async def test_a_bad_name_is_refused(
    registry: ProjectRegistry, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InvalidInput):
        await register(registry, tmp_path, name=name)


async def test_an_update_changes_what_it_names(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    project = await register(registry, tmp_path, templates=(SHELL,))
    changed = await registry.update(
        project.id,
        name="New \x1b[31mname",
        read_only=True,
        templates=None,
        allow_all_templates=True,
        actor=OWNER,
    )
    assert changed.name == "New \ufffd[31mname"
    assert changed.read_only
    assert changed.templates is None
    assert changed.path == project.path


async def test_a_project_that_is_gone_cannot_be_changed(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    project = await register(registry, tmp_path)
    await registry.remove(project.id, actor=OWNER)
    with pytest.raises(ProjectNotFound):
        await registry.remove(project.id, actor=OWNER)
    with pytest.raises(ProjectNotFound):
        await registry.update(
            ProjectId("project:none"),
            name=None,
            read_only=True,
            templates=None,
            allow_all_templates=False,
            actor=OWNER,
        )


async def test_every_change_is_in_the_audit_log(
    registry: ProjectRegistry, database: Database, tmp_path: Path
) -> None:
    project = await register(registry, tmp_path)
    await registry.remove(project.id, actor=OWNER)
    entries = await SqlAuditLog(database).list_entries(limit=10)
    assert [entry.record.action for entry in entries] == [
        "project.remove",
        "project.register",
    ]
    assert {entry.record.target_id for entry in entries} == {project.id}
    assert str(tmp_path) not in repr(entries)
