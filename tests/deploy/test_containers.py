"""The files that make containers agree with the files that they name. There is no container engine here to build them;
the scripts that they run, install.sh and start.sh, are tried by hand on a bare Debian, as docs/hub.md says.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("deploy/install.sh", "deploy/jupyterhub/start.sh", ".binder/postBuild")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_can_be_run_and_is_valid_shell(script: str) -> None:
    assert (ROOT / script).stat().st_mode & 0o111
    subprocess.run(["sh", "-n", ROOT / script], check=True)


def test_what_containers_run_is_there() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    development = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    said = dockerfile + development["postCreateCommand"]
    assert set(re.findall(r"deploy/[\w/]+\.sh", said)) == {"deploy/install.sh", "deploy/jupyterhub/start.sh"}
    assert (ROOT / ".binder" / (ROOT / ".binder" / "requirements.txt").read_text().split()[1]).resolve().is_file()


def test_the_class_of_containers_uses_what_the_hub_reads() -> None:
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    hub = compose["services"]["hub"]
    assert (ROOT / "deploy" / hub["build"]["context"] / hub["build"]["dockerfile"]).is_file()
    read = re.findall(
        r"^([A-Z_]+)  ", (ROOT / "deploy" / "jupyterhub" / "jupyterhub_config.py").read_text(), re.MULTILINE
    )
    assert set(hub["environment"]) <= set(read)
    assert hub["environment"]["GRADEBOOK"].startswith("postgresql+psycopg://")
    ignored = (ROOT / ".gitignore").read_text().split()
    left_out = (ROOT / ".dockerignore").read_text().split()
    made = [name.rstrip("/") for name in ignored if name.startswith(("course/", "workspace"))]
    assert [name for name in made if name not in left_out and "*" not in name] == [], "an image would hold marks"
