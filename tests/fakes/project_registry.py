"""Projects in memory."""

from dataclasses import replace

from sidestage.devices.model import Principal
from sidestage.errors import InvalidInput, ProjectExists, ProjectNotFound
from sidestage.feeds import Feed
from sidestage.ids import ProjectId, TemplateId
from sidestage.projects.model import Project, Projects
from tests.fakes.values import a_project


class FakeProjectRegistry(Projects):
    """Holds the projects it is given."""

    def __init__(self, *projects: Project) -> None:
        self._feed = Feed[Project](lambda project: project.id)
        for project in projects:
            self._feed.upsert(project)
        self.actors: list[Principal] = []

    @property
    def feed(self) -> Feed[Project]:
        """The projects by id, with their changes."""
        return self._feed

    def find_for(self, directory: str) -> Project | None:
        """Return the project whose path is exactly *directory*."""
        found = (each for each in self._feed.values() if each.path == directory)
        return next(found, None)

    async def register(
        self,
        path: str,
        *,
        name: str | None,
        read_only: bool,
        templates: tuple[TemplateId, ...] | None,
        actor: Principal,
    ) -> Project:
        """Register any absolute path once."""
        self.actors.append(actor)
        if not path.startswith("/"):
            raise InvalidInput("path must be absolute")
        if self.find_for(path):
            raise ProjectExists("That folder is registered already.")
        project = a_project(
            len(self._feed.values()) + 100,
            path=path,
            name=name or path,
            read_only=read_only,
            templates=templates,
        )
        self._feed.upsert(project)
        return project

    def _get(self, project_id: ProjectId) -> Project:
        project = self._feed.get(project_id)
        if project is None:
            raise ProjectNotFound("No project has that id.")
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
        """Change what is not None."""
        project = self._get(project_id)
        project = replace(
            project,
            name=project.name if name is None else name,
            read_only=project.read_only if read_only is None else read_only,
            templates=None
            if allow_all_templates
            else (project.templates if templates is None else templates),
        )
        self._feed.upsert(project)
        return project

    async def remove(self, project_id: ProjectId, *, actor: Principal) -> Project:
        """Forget the project."""
        project = self._get(project_id)
        self._feed.remove(project_id)
        return project
