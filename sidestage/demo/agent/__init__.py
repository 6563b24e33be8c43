"""A stand-in for Claude Code that starts in 30 ms and needs no model.

`install_scripted_agent(folder)` puts an executable named `claude` there. Process scans,
registry, transcripts and terminal see it as they see the real one, as far as
`tests/e2e/agents/test_agent_contract.py` goes, which runs against both.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

PARTS: Final = (
    "scripted_agent.py",
    "agent_files.py",
    "agent_hooks.py",
    "agent_script.py",
    "agent_steps.py",
    "agent_terminal.py",
)


def install_scripted_agent(folder: Path, *, script: str | None = None) -> Path:
    """Put the program and all it needs into *folder*; return its path.

    *script* is the JSON that says how it answers prompts (`agent_script.py`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = folder / ".scripted-agent"
    parts = root.joinpath(*__name__.split("."))
    parts.mkdir(exist_ok=True, parents=True)
    for name in PARTS:
        shutil.copyfile(Path(__file__).with_name(name), parts / name)
    if script is not None:
        (parts / "script.json").write_text(script, encoding="utf-8")
    program = folder / "claude"
    # Not the virtual environment's: a sandbox need not show that.
    python = Path(sys.executable).resolve()
    program.write_text(
        f"#!{python} -SE\n"
        f"import sys\n"
        f"sys.dont_write_bytecode = True\n"
        f"sys.path.insert(0, {str(root)!r})\n"
        f"from {__name__}.scripted_agent import main\n"
        f"main()\n"
    )
    program.chmod(0o755)
    return program
