"""Matplotlib's list of fonts. To make it, Matplotlib opens every font of the computer, and it would do so in each warm
process. The list is made once, from what the sandbox sees, and kept beside the byte code. It does not know fonts that
are installed later, as Matplotlib's own list does not; if the file is deleted, it is made anew.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

PRINT_LIST = """
import json, matplotlib.font_manager
from pathlib import Path
print(json.dumps({path.name: path.read_text() for path in Path(matplotlib.get_cachedir()).glob("fontlist*.json")}))
"""


def list_file(folder: Path) -> Path:
    """The file with the list, if `folder` holds this module: what `PRINT_LIST` printed in a sandbox. Raises
    PackageNotFoundError if there is no Matplotlib.
    """
    from importlib.metadata import version  # takes 10 ms, which only plots should have to wait for

    return folder / "__pycache__" / f"fonts-of-matplotlib-{version('matplotlib')}.json"


def are_needed(preload: list[str] | None) -> bool:
    """Whether a process that loads these libraries will draw; None if it is not known what notebooks will use."""
    return preload is None or any(name.partition(".")[0] == "matplotlib" for name in preload)


def use_list() -> None:
    """Put the list where Matplotlib looks for it. If there is none, Matplotlib makes one."""
    with contextlib.suppress(OSError, ValueError, ImportError):
        folder = Path(os.environ["MPLCONFIGDIR"])
        folder.mkdir(exist_ok=True)
        for name, text in json.loads(list_file(Path(__file__).parent).read_bytes()).items():
            (folder / name).write_text(text)
