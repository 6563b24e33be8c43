"""The launcher of terminals, and the folders of the programs they may run."""

import asyncio
from functools import partial
from pathlib import Path

from api.hook_program import python_folders
from sidestage.agents.claude_code.private_files import ClaudePrivateFiles
from sidestage.sessions.model import AgentKind
from sidestage.settings import Settings
from sidestage.terminals.launch import Launcher, LaunchSettings
from sidestage.terminals.programs import (
    AGENT_PROGRAMS,
    COMPANIONS,
    find_program_dirs,
    read_git_config,
)
from sidestage.terminals.templates import TemplateShelf, find_templates


async def make_launcher(settings: Settings, files: ClaudePrivateFiles) -> Launcher:
    """Make the launcher; reads the owner's git configuration once."""
    launch = LaunchSettings(
        home=settings.home,
        state_dir=settings.state_dir,
        sandbox=settings.sandbox,
        environment=settings.environment,
        pass_environment=settings.pass_environment,
        find_program_dirs=partial(_program_dirs, settings),
        git_config=await asyncio.to_thread(read_git_config, dict(settings.environment)),
        hidden=settings.claude_dirs,
    )
    return Launcher(launch, {AgentKind.CLAUDE_CODE: files})


def make_templates(settings: Settings) -> TemplateShelf:
    """Return the shelf that looks for the owner's programs."""
    shell = settings.environment.get("SHELL")
    return TemplateShelf(partial(find_templates, path=settings.path, shell=shell))


def _program_dirs(settings: Settings) -> tuple[Path, ...]:
    listed = map(Path, settings.sandbox_path_dirs)
    return find_program_dirs(
        (*AGENT_PROGRAMS, *COMPANIONS),
        path=settings.path,
        home=settings.home,
        listed=(*listed, *python_folders(settings.home)),
    )
