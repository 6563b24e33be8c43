"""A registered project, and the templates it allows."""

from dataclasses import dataclass
from datetime import datetime

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
