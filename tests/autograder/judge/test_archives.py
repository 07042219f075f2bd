"""Archives that a test cell unpacks while it is graded write nothing outside the given folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from autograder.judge.outside import guard


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that climbs out of its folder; `tarfile` is restored after the test."""
    monkeypatch.setattr(tarfile.TarFile, "extraction_filter", None, raising=False)
    for name in ("extract", "extractall"):
        monkeypatch.setattr(tarfile.TarFile, name, getattr(tarfile.TarFile, name))
    file = tmp_path / "archive.tar"
    with tarfile.open(file, "w") as opened:
        member = tarfile.TarInfo("../escaped.txt")
        member.size = 1
        opened.addfile(member, io.BytesIO(b"x"))
    return file


def unpack(archive: Path) -> None:
    folder = archive.parent / "folder"
    folder.mkdir(exist_ok=True)
    with guard.on_guard(), tarfile.open(archive) as opened:
        opened.extractall(folder)


def test_nothing_is_written_outside(archive: Path) -> None:
    guard.tame_archives()
    with pytest.raises((guard.Forbidden, getattr(tarfile, "FilterError", guard.Forbidden))):
        unpack(archive)
    assert not (archive.parent / "escaped.txt").exists()


def test_a_python_without_filters_unpacks_nothing(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    guard.tame_archives()
    with pytest.raises(guard.Forbidden, match=r"only on Python 3\.11\.4 or newer"):
        unpack(archive)
    assert not (archive.parent / "escaped.txt").exists()
