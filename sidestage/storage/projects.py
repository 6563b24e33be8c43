"""The table of registered projects."""

from sqlalchemy import (
    Boolean,
    Column,
    Row,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.ids import HostId, ProjectId, TemplateId
from sidestage.projects.model import Project
from sidestage.storage.schema import UtcTime, metadata

projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("host_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False, unique=True),
    # Text: an inode number may need all of 64 unsigned bits.
    Column("device", Text, nullable=False),
    Column("inode", Text, nullable=False),
    Column("read_only", Boolean, nullable=False),
    Column("templates", Text),
    Column("created_at", UtcTime, nullable=False),
)
"""`templates`: the ids, one a line; NULL allows every template."""


async def list_projects(db: AsyncConnection) -> tuple[Project, ...]:
    """Return every project, oldest first."""
    rows = await db.execute(select(projects).order_by(projects.c.created_at))
    return tuple(_project(row) for row in rows)


async def add_project(db: AsyncConnection, project: Project) -> None:
    """Insert *project*."""
    await db.execute(insert(projects).values(_values(project)))


async def save_project(db: AsyncConnection, project: Project) -> None:
    """Write *project* over the row with its id."""
    await db.execute(
        update(projects).where(projects.c.id == project.id).values(_values(project))
    )


async def delete_project(db: AsyncConnection, project_id: ProjectId) -> None:
    """Delete the row."""
    await db.execute(delete(projects).where(projects.c.id == project_id))


def _values(project: Project) -> dict[str, object]:
    return {
        "id": project.id,
        "host_id": project.host_id,
        "name": project.name,
        "path": project.path,
        "device": str(project.device),
        "inode": str(project.inode),
        "read_only": project.read_only,
        "templates": None
        if project.templates is None
        else "\n".join(project.templates),
        "created_at": project.created_at,
    }


def _project(row: Row[tuple[object, ...]]) -> Project:
    templates = row.templates
    return Project(
        id=ProjectId(row.id),
        host_id=HostId(row.host_id),
        name=row.name,
        path=row.path,
        device=int(row.device),
        inode=int(row.inode),
        read_only=row.read_only,
        templates=None
        if templates is None
        else tuple(TemplateId(line) for line in templates.splitlines()),
        created_at=row.created_at,
    )
