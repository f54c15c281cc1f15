"""The one writer of generated files: no path twice, no needless change, nothing stale, nothing half written."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .errors import MoegradError


@dataclass
class FileWriter:
    """Collects files below `root`, then writes or checks them all."""

    root: Path
    owned: tuple[str, ...] = ("*.pyx",)
    """Patterns of the files that belong to the generator: those it did not ask for are stale."""
    mark: str = ""
    """What a file has in its first lines if the generator wrote it; without it a file is never stale."""
    files: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, text: str) -> None:
        """One file, by its path below the root."""
        if path in self.files:
            raise MoegradError(f"{path}: two kernels want the same file")
        self.files[path] = text

    def differences(self) -> list[str]:
        """What writing would change, one line a file: missing, different or stale."""
        found = []
        for path, text in sorted(self.files.items()):
            current = _read(self.root / path)
            if current is None:
                found.append(f"{path}: missing")
            elif current != text.encode():
                found.append(f"{path}: differs")
        return found + [f"{path}: stale" for path in self._stale()]

    def write(self, *, remove_stale: bool = False) -> list[str]:
        """Writes what changed, each file by an atomic rename; returns the paths it touched."""
        touched = []
        for path, text in sorted(self.files.items()):
            if _read(self.root / path) != text.encode():
                _replace(self.root / path, text)
                touched.append(path)
        if remove_stale:
            for path in self._stale():
                (self.root / path).unlink()
                touched.append(path)
        return touched

    def _stale(self) -> list[str]:
        present = {
            str(p.relative_to(self.root)) for pattern in self.owned for p in self.root.glob(pattern) if p.is_file()
        }
        return [path for path in sorted(present - set(self.files)) if self._wrote(path)]

    def _wrote(self, path: str) -> bool:
        head = (self.root / path).read_bytes()[:400]
        return self.mark.encode() in head


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _replace(path: Path, text: str) -> None:
    """Writes beside the target and renames, so that no reader ever sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
