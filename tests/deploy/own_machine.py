"""Runs a command as if on a machine of its own: its accounts, homes and processes are separate, and end with it.

    unshare --mount --pid --fork --kill-child --mount-proc python own_machine.py FOLDER COMMAND ...

For tests that make accounts, as root. /etc is a copy, so that programs such as useradd change nothing outside; homes
are in FOLDER; what happens to the checkout happens to a layer over it; and the folders above the interpreter and the
checkout are opened to other accounts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def mount(*arguments: object) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def own(folder: Path, name: str, copied: bool) -> None:
    """Mount a folder of our own over one of the machine's."""
    target = folder / name
    target.mkdir()
    if copied:
        subprocess.run(["cp", "-a", f"/{name}/.", str(target)], check=True)
    mount("--bind", target, f"/{name}")


def open_to_all(folder: Path, wanted: list[Path]) -> None:
    """Let every account reach these folders: a closed folder above them is covered by one that holds nothing else."""
    kept = {path: folder / f"kept-{number}" for number, path in enumerate(wanted)}
    for path, aside in kept.items():
        aside.mkdir()
        mount("--bind", path, aside)
    closed = {next((up for up in reversed(path.parents) if not up.stat().st_mode & 0o001), None) for path in wanted}
    for up in closed - {None}:
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", up)
    for path, aside in kept.items():
        path.mkdir(parents=True, exist_ok=True)
        mount("--bind", aside, path)


def layer_over(folder: Path, path: Path) -> None:
    """Keep what is changed below a path in a layer of its own, in memory."""
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    above, work = folder / "above", folder / "work"
    above.mkdir()
    work.mkdir()
    mount("-t", "overlay", "overlay", "-o", f"lowerdir={path},upperdir={above},workdir={work}", path)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir()
    folder.chmod(0o755)
    own(folder, "etc", copied=True)
    own(folder, "home", copied=False)
    own(folder, "srv", copied=False)
    open_to_all(folder, [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT])
    layer_over(folder / "layer", ROOT)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
