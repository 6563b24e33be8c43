"""A backup: one archive with the database and the files of the state folder.

What belongs to a run (sockets, locks, logs, folders of running terminals) stays out.
"""

import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sidestage import __version__
from sidestage.command.failure import CommandFailed
from sidestage.settings import Settings
from sidestage.state import lock_state_folder, prepare_state_folder
from sidestage.storage.backup import DatabaseUnusable, check_database, copy_database

FORMAT: Final = 1
MANIFEST: Final = "sidestage-backup.json"
MANIFEST_LIMIT_BYTES: Final = 1024 * 1024
"""Some 100 bytes a file, and there are some hundreds."""
FILES_LIMIT: Final = 10_000
"""Far more than a state folder has; an archive with more was not made here."""
TOTAL_LIMIT_BYTES: Final = 8 << 30
"""Of an archive's contents: far above any honest one, below what fills a disk."""
RUN_FOLDERS: Final = frozenset({"terminals"})
RUN_SUFFIXES: Final = (".lock", ".log", ".log.1", "-wal", "-shm", "-journal")


def write_backup(settings: Settings, target: Path) -> int:
    """Write a new archive at *target* (0600); return how many files it holds.

    The server may run. Raises `CommandFailed`.
    """
    if not settings.database.exists():
        raise CommandFailed(f"There is nothing to back up in {settings.state_dir}.")
    with tempfile.TemporaryDirectory(dir=settings.state_dir, prefix=".backup-") as work:
        copy = Path(work) / settings.database.name
        try:
            copy_database(settings.database, copy)
        except DatabaseUnusable as error:
            raise CommandFailed(str(error)) from error
        files = {settings.database.name: copy}
        files |= dict(_kept_files(settings))
        _write_archive(target, files)
    return len(files)


def _kept_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    for path in sorted(settings.state_dir.rglob("*")):
        parts = path.relative_to(settings.state_dir).parts
        of_run = parts[0] in RUN_FOLDERS or any(p.startswith(".") for p in parts)
        if of_run or path.name.endswith(RUN_SUFFIXES) or path == settings.database:
            continue
        if stat.S_ISREG(path.lstat().st_mode):
            yield "/".join(parts), path


def _write_archive(target: Path, files: dict[str, Path]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(target, flags, 0o600)
    except OSError as error:
        raise CommandFailed(
            f"{target} cannot be made: {error.strerror}. Name a new file."
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz") as archive:
                contents = {name: path.read_bytes() for name, path in files.items()}
                _add(archive, MANIFEST, _manifest(contents))
                for name, content in contents.items():
                    _add(archive, name, content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        target.unlink(missing_ok=True)
        raise CommandFailed(f"{target} cannot be written: {error.strerror}.") from error


def _manifest(contents: dict[str, bytes]) -> bytes:
    values = {
        "format": FORMAT,
        "version": __version__,
        "createdAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "sha256": {name: _digest(content) for name, content in contents.items()},
    }
    return json.dumps(values, indent=1).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, io.BytesIO(content))


def restore_backup(settings: Settings, source: Path) -> Path | None:
    """Put the archive *source* in place of the state folder's contents.

    Nothing is touched before the whole archive was checked. What was there before goes
    to a folder beside it, which is returned; None if there was nothing. Raises
    `CommandFailed`, and `StateFolderUnsafe` while a server runs.
    """
    prepare_state_folder(settings.state_dir)
    with (
        lock_state_folder(settings.state_dir),
        tempfile.TemporaryDirectory(dir=settings.state_dir, prefix=".restore-") as work,
    ):
        unpacked = Path(work)
        try:
            names = _unpack(source, unpacked)
            check_database(unpacked / settings.database.name)
        except (OSError, tarfile.TarError, EOFError, ValueError, KeyError) as error:
            raise CommandFailed(f"{source} is no whole backup: {error}.") from error
        except DatabaseUnusable as error:
            raise CommandFailed(f"{source} cannot be used. {error}") from error
        aside = _put_aside(settings)
        for name in names:
            place = settings.state_dir / name
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (unpacked / name).replace(place)
    return aside


def _unpack(source: Path, folder: Path) -> tuple[str, ...]:
    """Write the archive's files below *folder*; return their names."""
    with tarfile.open(source, mode="r:gz") as archive:
        digests = _read_manifest(archive)
        left = dict(digests)
        total = 0
        for member in islice(archive, 1, None):
            expected = left.pop(member.name, None)
            total += member.size
            if expected is None or not member.isreg() or total > TOTAL_LIMIT_BYTES:
                raise ValueError(f"{member.name!r} does not belong in it")
            content = _read(archive, member)
            if _digest(content) != expected:
                raise ValueError(f"{member.name} is damaged")
            place = folder / member.name
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.touch(mode=0o600)
            place.write_bytes(content)
    if left:
        raise ValueError(f"{min(left)} is missing")
    return tuple(digests)


def _read_manifest(archive: tarfile.TarFile) -> dict[str, str]:
    member = archive.next()
    if member is None or member.name != MANIFEST or not member.isreg():
        raise ValueError("it does not begin with its list of files")
    if member.size > MANIFEST_LIMIT_BYTES:
        raise ValueError("its list of files is too long")
    values: dict[str, Any] = json.loads(_read(archive, member))
    if values["format"] != FORMAT:
        raise ValueError("its format is of a newer version")
    digests = {str(name): str(digest) for name, digest in values["sha256"].items()}
    if len(digests) > FILES_LIMIT or not all(map(_is_plain, digests)):
        raise ValueError("it names files that no state folder has")
    return digests


def _is_plain(name: str) -> bool:
    parts = name.split("/")
    return not any(part.startswith(".") or not part or "\0" in part for part in parts)


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    if file is None:
        raise ValueError(f"{member.name} cannot be read")
    return file.read()


def _put_aside(settings: Settings) -> Path | None:
    files = dict(_kept_files(settings))
    for name in (settings.database.name, *_side_files(settings)):
        if (settings.state_dir / name).exists():
            files[name] = settings.state_dir / name
    if not files:
        return None
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = Path(tempfile.mkdtemp(prefix=f".replaced-{stamp}-", dir=settings.state_dir))
    for name, path in files.items():
        place = aside / name
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(path, place)
    return aside


def _side_files(settings: Settings) -> tuple[str, ...]:
    return tuple(f"{settings.database.name}{end}" for end in ("-wal", "-shm"))
