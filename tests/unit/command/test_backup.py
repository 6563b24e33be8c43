import io
import json
import sqlite3
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.command import backups
from sidestage.command.backups import MANIFEST, restore_backup, write_backup
from sidestage.command.failure import CommandFailed
from sidestage.errors import StateFolderUnsafe
from sidestage.settings import Settings, read_settings
from sidestage.state import lock_state_folder
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAuditLog


@pytest.fixture
async def settings(tmp_path: Path) -> Settings:
    """A state folder that is in use: its database has one entry of the audit log."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    settings = read_settings({"state_dir": str(state)}, environment={"HOME": "/nobody"})
    await write_entry(settings, "project:1")
    settings.admin_token_file.write_text("secret")
    (state / "screens").mkdir()
    (state / "screens" / "one.screen").write_bytes(b"\0\1screen")
    (state / "terminals" / "1").mkdir(parents=True)
    (state / "terminals" / "1" / "socket").write_text("of this run")
    (state / "serve.lock").touch()
    (state / "host.log").write_text("a log")
    (state / ".half").write_text("half written")
    (state / "link").symlink_to("/etc/passwd")
    return settings


async def write_entry(settings: Settings, target: str) -> None:
    database = await Database.open(settings.database)
    record = AuditRecord("admin", "project.register", target, AuditOutcome.DONE)
    await SqlAuditLog(database).write(record)
    await database.close()


def targets(settings: Settings) -> list[str]:
    with sqlite3.connect(settings.database) as db:
        rows = db.execute("SELECT target_id FROM audit_entries ORDER BY seq").fetchall()
    db.close()
    return [target for (target,) in rows]


def names_in(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return set(tar.getnames())


async def test_a_backup_brings_back_what_was_there(
    settings: Settings, tmp_path: Path
) -> None:
    archive = tmp_path / "backup"
    write_backup(settings, archive)
    await write_entry(settings, "project:2")
    settings.admin_token_file.write_text("another")
    (settings.state_dir / "new").write_text("made later")

    aside = restore_backup(settings, archive)

    assert targets(settings) == ["project:1"]
    assert settings.admin_token_file.read_text() == "secret"
    assert (settings.state_dir / "screens" / "one.screen").read_bytes() == b"\0\1screen"
    assert not (settings.state_dir / "new").exists()
    assert aside is not None
    assert (aside / "admin.token").read_text() == "another"
    assert (aside / "new").read_text() == "made later"


def test_a_backup_is_for_its_owner_alone_and_holds_nothing_of_a_run(
    settings: Settings, tmp_path: Path
) -> None:
    archive = tmp_path / "backup"
    write_backup(settings, archive)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    files = {"sidestage.db", "admin.token", "screens/one.screen"}
    assert names_in(archive) == files | {MANIFEST}


def test_what_is_restored_is_for_its_owner_alone(
    settings: Settings, tmp_path: Path
) -> None:
    write_backup(settings, tmp_path / "backup")
    restore_backup(settings, tmp_path / "backup")
    for name in ("sidestage.db", "admin.token", "screens/one.screen"):
        mode = (settings.state_dir / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600, name


async def test_a_backup_is_taken_while_the_database_is_written(
    settings: Settings, tmp_path: Path
) -> None:
    """What lies in the write-ahead log alone is in it, what is not committed is not."""
    database = await Database.open(settings.database)
    log = SqlAuditLog(database)
    await log.write(AuditRecord("admin", "x", "project:2", AuditOutcome.DONE))
    write_backup(settings, tmp_path / "backup")
    await database.close()
    restore_backup(settings, tmp_path / "backup")
    assert targets(settings) == ["project:1", "project:2"]


def test_a_file_that_is_there_is_not_overwritten(
    settings: Settings, tmp_path: Path
) -> None:
    archive = tmp_path / "backup"
    archive.write_text("precious")
    with pytest.raises(CommandFailed, match="Name a new file"):
        write_backup(settings, archive)
    assert archive.read_text() == "precious"


def test_an_empty_folder_has_nothing_to_back_up(tmp_path: Path) -> None:
    settings = read_settings({"state_dir": str(tmp_path)}, environment={"HOME": "/n"})
    with pytest.raises(CommandFailed, match="nothing to back up"):
        write_backup(settings, tmp_path / "backup")


def test_nothing_is_restored_while_a_server_runs(
    settings: Settings, tmp_path: Path
) -> None:
    write_backup(settings, tmp_path / "backup")
    with (
        lock_state_folder(settings.state_dir),
        pytest.raises(StateFolderUnsafe, match="Another Sidestage server runs"),
    ):
        restore_backup(settings, tmp_path / "backup")


def rewrite(archive: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Unpack *archive*, change its members, and pack it again."""
    with tarfile.open(archive) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]  # files all
    change(members)
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def replace_database(content: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["sidestage.db"] = content
        manifest = json.loads(members[MANIFEST])
        manifest["sha256"]["sidestage.db"] = backups._digest(content)
        members[MANIFEST] = json.dumps(manifest).encode()

    return change


def rename_in_manifest(name: str) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        manifest = json.loads(members[MANIFEST])
        manifest["sha256"][name] = manifest["sha256"].pop("admin.token")
        members[MANIFEST] = json.dumps(manifest).encode()
        members[name] = members.pop("admin.token")

    return change


def set_newer_format(members: dict[str, bytes]) -> None:
    members[MANIFEST] = members[MANIFEST].replace(b'"format": 1', b'"format": 2')


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda members: members.update({"admin.token": b"forged"}), "is damaged"),
        (lambda members: members.pop("admin.token"), "is missing"),
        (lambda members: members.update({"extra": b"x"}), "does not belong"),
        (lambda members: members.pop(MANIFEST), "does not begin with"),
        (rename_in_manifest("../outside"), "no state folder has"),
        (rename_in_manifest("/etc/outside"), "no state folder has"),
        (set_newer_format, "newer version"),
        (replace_database(b"no database"), "cannot be read"),
    ],
    ids=[
        "changed",
        "less",
        "more",
        "no list",
        "climbing",
        "absolute",
        "newer format",
        "no database",
    ],
)
def test_an_archive_that_is_not_whole_changes_nothing(
    settings: Settings,
    tmp_path: Path,
    change: Callable[[dict[str, bytes]], None],
    words: str,
) -> None:
    archive = tmp_path / "backup"
    write_backup(settings, archive)
    rewrite(archive, change)
    settings.admin_token_file.write_text("as it is now")
    with pytest.raises(CommandFailed, match=words):
        restore_backup(settings, archive)
    assert settings.admin_token_file.read_text() == "as it is now"
    assert targets(settings) == ["project:1"]
    assert not (tmp_path / "outside").exists()


def test_an_archive_cut_in_the_middle_changes_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    archive = tmp_path / "backup"
    write_backup(settings, archive)
    data = archive.read_bytes()
    for length in (0, 10, len(data) // 2):
        archive.write_bytes(data[:length])
        with pytest.raises(CommandFailed, match="no whole backup"):
            restore_backup(settings, archive)
    assert targets(settings) == ["project:1"]


def test_a_backup_of_a_newer_version_is_refused(
    settings: Settings, tmp_path: Path
) -> None:
    """An older program on newer tables would fail later, in the middle of its work."""
    with sqlite3.connect(settings.database) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    db.close()
    write_backup(settings, tmp_path / "backup")
    with pytest.raises(CommandFailed, match="newer version"):
        restore_backup(settings, tmp_path / "backup")
