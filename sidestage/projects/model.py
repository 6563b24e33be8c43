"""A registered project, and the templates it allows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sidestage.devices.model import Principal
from sidestage.feeds import Feed
from sidestage.ids import HostId, ProjectId, TemplateId


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder in which terminals may be started."""

    id: ProjectId
    host_id: HostId
    name: str
    path: str
    """The real path; no link is left in it."""
    device: int
    inode: int
    """Identity of the folder at registration (`st_dev`, `st_ino`)."""
    read_only: bool
    templates: tuple[TemplateId, ...] | None
    """The templates it allows; None allows every one."""
    created_at: datetime

    def allows(self, template: TemplateId) -> bool:
        """Tell whether a terminal of *template* may be started here."""
        return self.templates is None or template in self.templates


class Projects(Protocol):
    """The registered projects."""

    @property
    def feed(self) -> Feed[Project]:
        """The projects by id, with their changes."""

    def find_for(self, directory: str) -> Project | None:
        """Return the project with the longest path that contains *directory*."""

    async def register(
        self,
        path: str,
        *,
        name: str | None,
        read_only: bool,
        templates: tuple[TemplateId, ...] | None,
        actor: Principal,
    ) -> Project:
        """Register the folder at *path* (absolute; links are resolved).

        Raises `InvalidInput`, `ProjectFolderMissing`, `ProjectTooWide`,
        `ProjectExists`, `ProjectLimitReached`, `TemplateNotFound`.
        """

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

    async def remove(self, project_id: ProjectId, *, actor: Principal) -> Project:
        """Forget the project (its folder stays); raises `ProjectNotFound`."""
