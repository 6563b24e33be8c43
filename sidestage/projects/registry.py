"""The registered projects: kept in memory, written down before they count."""

import asyncio
import os
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.model import Principal
from sidestage.errors import (
    InvalidInput,
    ProjectExists,
    ProjectFolderMissing,
    ProjectLimitReached,
    ProjectNotFound,
    TemplateNotFound,
)
from sidestage.feeds import Feed
from sidestage.ids import HostId, ProjectId, TemplateId, new_id
from sidestage.projects.model import Project
from sidestage.text import clean_text

NAME_LIMIT_CHARACTERS: Final = 64
PATH_LIMIT_BYTES: Final = 4096
"""PATH_MAX of Linux (limits.h): no folder can be opened by a longer path."""
PROJECTS_LIMIT: Final = 500
"""Each session's folder is compared with every project's."""


class ProjectStore(Protocol):
    """Where projects are written down, each change with its audit record."""

    async def load(self) -> tuple[Project, ...]:
        """Return every project, oldest first."""

    async def add(self, project: Project, record: AuditRecord) -> None:
        """Insert *project*."""

    async def save(self, project: Project, record: AuditRecord) -> None:
        """Write *project* over its row."""

    async def remove(self, project_id: ProjectId, record: AuditRecord) -> None:
        """Delete the row."""


class BoundsCheck(Protocol):
    """Decides whether a real path may be a project."""

    def __call__(self, path: Path) -> None:
        """Return, or raise `ProjectTooWide` with the reason."""


class ProjectRegistry:
    """`sidestage.projects.model.Projects`, over a store."""

    def __init__(
        self,
        store: ProjectStore,
        *,
        host_id: HostId,
        check_bounds: BoundsCheck,
        templates: Collection[TemplateId],
        clock: Callable[[], datetime],
    ) -> None:
        self.feed: Feed[Project] = Feed(lambda project: project.id)
        self._store = store
        self._host_id = host_id
        self._check_bounds = check_bounds
        self._templates = templates
        self._clock = clock
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Read the projects from the store. Call once, before anything else."""
        for project in await self._store.load():
            self.feed.upsert(project)

    def find_for(self, directory: str) -> Project | None:
        """Return the project with the longest path that contains *directory*."""
        best: Project | None = None
        for project in self.feed.values():
            if contains(project.path, directory) and (
                best is None or len(project.path) > len(best.path)
            ):
                best = project
        return best

    async def register(
        self,
        path: str,
        *,
        name: str | None,
        read_only: bool,
        templates: tuple[TemplateId, ...] | None,
        actor: Principal,
    ) -> Project:
        """Register the folder at *path* (see `Projects.register`)."""
        self._check_templates(templates)
        real, status = await asyncio.to_thread(_resolve, path)
        self._check_bounds(real)
        project = Project(
            id=ProjectId(new_id("project")),
            host_id=self._host_id,
            name=_checked_name(name) if name is not None else _folder_name(real),
            path=str(real),
            device=status.st_dev,
            inode=status.st_ino,
            read_only=read_only,
            templates=templates,
            created_at=self._clock(),
        )
        async with self._changing:
            self._check_room(project)
            await self._store.add(project, _record("register", project, actor))
            self.feed.upsert(project)
        return project

    async def update(
        self,
        project_id: ProjectId,
        *,
        name: str | None,
        read_only: bool | None,
        templates: tuple[TemplateId, ...] | None,
        allow_all_templates: bool,
        actor: Principal,
    ) -> Project:
        """Change what is not None; raises `ProjectNotFound`, `InvalidInput`."""
        self._check_templates(templates)
        if templates is not None and allow_all_templates:
            raise InvalidInput("Name the templates or allow all of them, not both.")
        async with self._changing:
            project = self._get(project_id)
            if name is not None:
                project = replace(project, name=_checked_name(name))
            if read_only is not None:
                project = replace(project, read_only=read_only)
            if templates is not None or allow_all_templates:
                project = replace(project, templates=templates)
            await self._store.save(project, _record("update", project, actor))
            self.feed.upsert(project)
        return project

    async def remove(self, project_id: ProjectId, *, actor: Principal) -> Project:
        """Forget the project (its folder stays); raises `ProjectNotFound`."""
        async with self._changing:
            project = self._get(project_id)
            await self._store.remove(project_id, _record("remove", project, actor))
            self.feed.remove(project_id)
        return project

    def _get(self, project_id: ProjectId) -> Project:
        project = self.feed.get(project_id)
        if project is None:
            raise ProjectNotFound("There is no project with that id.")
        return project

    def _check_templates(self, templates: tuple[TemplateId, ...] | None) -> None:
        for template in templates or ():
            if template not in self._templates:
                shown = clean_text(template, multiline=False)
                raise TemplateNotFound(f"There is no template {shown!r}.")

    def _check_room(self, project: Project) -> None:
        known = self.feed.values()
        for other in known:
            if other.path == project.path:
                raise ProjectExists(f"That folder is the project {other.name!r}.")
        if len(known) >= PROJECTS_LIMIT:
            raise ProjectLimitReached(
                f"There are {PROJECTS_LIMIT} projects already. Remove one first."
            )


def contains(folder: str, path: str) -> bool:
    """Tell whether *path* is *folder* or lies in it: `/a/bc` does not lie in `/a/b`."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _resolve(path: str) -> tuple[Path, os.stat_result]:
    if not path.startswith("/"):
        raise InvalidInput("Give the folder's absolute path.")
    if not _is_path(path):
        raise InvalidInput("That is not a path.")
    try:
        real = Path(path).resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError) as error:
        raise ProjectFolderMissing("There is no such folder.") from error
    if not real.is_dir():
        raise ProjectFolderMissing("That is not a folder.")
    try:
        str(real).encode()
    except UnicodeEncodeError:
        raise InvalidInput("The folder's name is not valid Unicode.") from None
    return real, status


def _is_path(text: str) -> bool:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return False
    return b"\0" not in encoded and len(encoded) <= PATH_LIMIT_BYTES


def _folder_name(path: Path) -> str:
    return clean_text(path.name, multiline=False)[:NAME_LIMIT_CHARACTERS] or str(path)


def _checked_name(name: str) -> str:
    cleaned = clean_text(name, multiline=False)
    if not 1 <= len(cleaned) <= NAME_LIMIT_CHARACTERS:
        raise InvalidInput(f"A name has 1 to {NAME_LIMIT_CHARACTERS} characters.")
    return cleaned


def _record(verb: str, project: Project, actor: Principal) -> AuditRecord:
    return AuditRecord(
        actor=actor.actor,
        address=actor.address,
        action=f"project.{verb}",
        target_id=project.id,
        outcome=AuditOutcome.DONE,
    )
