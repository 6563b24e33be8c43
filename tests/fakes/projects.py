"""Registered projects, as far as discovery asks for them."""

from datetime import UTC, datetime
from typing import Any

from sidestage.feeds import Feed
from sidestage.ids import HostId, ProjectId
from sidestage.projects.model import Project


class FakeProjects:
    """The part of the port `Projects` that readers use."""

    def __init__(self) -> None:
        self.feed: Feed[Project] = Feed(lambda project: project.id)

    def put(self, path: str) -> Project:
        """Register the folder at *path*."""
        project = Project(
            id=ProjectId(f"project:{path}"),
            host_id=HostId("host:test"),
            name=path,
            path=path,
            device=1,
            inode=1,
            read_only=False,
            templates=None,
            created_at=datetime(2026, 11, 30, tzinfo=UTC),
        )
        self.feed.upsert(project)
        return project

    def find_for(self, directory: str) -> Project | None:
        """Return the project with the longest path that contains *directory*."""
        containing = [
            project
            for project in self.feed.values()
            if f"{directory}/".startswith(f"{project.path}/")
        ]
        return max(containing, key=lambda project: len(project.path), default=None)

    async def register(self, path: str, **_: Any) -> Project:
        return self.put(path)

    async def update(self, project_id: ProjectId, **_: Any) -> Project:
        raise AssertionError(project_id)

    async def remove(self, project_id: ProjectId, **_: Any) -> Project:
        project = self.feed.get(project_id)
        assert project is not None
        self.feed.remove(project_id)
        return project
