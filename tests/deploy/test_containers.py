"""The files that make containers agree with the files that they name, and an image holds nothing of a class. There is
no container engine here to build one; the scripts that it runs, install.sh and start.sh, are tried by hand on a bare
Debian, as docs/hub.md says.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.dockerignore import enters, image_of, rules_of

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


RULES = [
    # the manual's examples
    ("*/temp*", "somedir/temporary.txt", False),
    ("*/temp*", "somedir/temp/file", False),
    ("*/temp*", "a/b/temp", True),
    ("*/*/temp*", "a/b/temp", False),
    ("temp?", "tempa", False),
    ("temp?", "temp", True),
    ("**/*.go", "file.go", False),
    ("**/*.go", "a/b/file.go", False),
    ("*.md\n!README.md", "README.md", True),
    ("*.md\n!README*.md\nREADME-secret.md", "README-secret.md", False),
    ("*.md\nREADME-secret.md\n!README*.md", "README-secret.md", True),
    ("# *\n\n  b  ", "a", True),
    ("# *\n\n  b  ", "b", False),
    # slashes, and folders above
    ("/a", "a", False),
    ("a/", "a/b/c", False),
    ("./a//b/../c", "a/c", False),
    ("a", "b/a", True),
    ("*.py", "a/b.py", True),
    ("a\n!a/b", "a/b/c", True),
    ("*\n!a/**/*.py", "a/b/c.py", True),
    ("*\n!a/**/*.py", "b/a/c.py", False),
    ("!a\n*", "a", False),
    ("\ufeffa\n! b", "a", False),
    # what Docker's own tests say of **, of sets and of letters that regular expressions know
    ("**", "a/b", False),
    ("a/**", "a", True),
    ("a/**", "a/b/c", False),
    ("**/.a", "b.a", True),
    ("**a", "ba", False),
    ("a**/*.txt", "a/b/c/d.txt", False),
    ("**/**/*.txt2", "a/b.txt", True),
    ("**/a/*", "b/a/c", False),
    ("a[^b-d]e", "aze", False),
    ("a[^b-d]e", "ace", True),
    ("a\\*b", "a*b", False),
    ("a.c", "abc", True),
    ("a(b)c+", "a(b)c+", False),
]


@pytest.mark.parametrize(("text", "path", "wanted"), RULES)
def test_a_dockerignore_is_read_by_docker_s_rules(text: str, path: str, wanted: bool) -> None:
    assert enters(path, rules_of(text)) is wanted


def known_to_git() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if (ROOT / name).is_file()]


def test_the_image_has_what_runs_in_it() -> None:
    """The packages and the course, as a wheel has them, and what the Dockerfile and install.sh run."""
    folders = ("autograder/", "mini_autograd/", "course/", "deploy/jupyterhub/")
    run = {"deploy/install.sh", "bootstrap.py", "pyproject.toml", "README.md", "LICENSE"}
    run |= {f"requirements/{name}.lock" for name in ("course", "grading", "hub", "dev")}
    rules = rules_of((ROOT / ".dockerignore").read_text())
    wanted = {name for name in known_to_git() if name.startswith(folders)} | run
    assert {name for name in known_to_git() if enters(name, rules)} == wanted
    assert not list((ROOT / "deploy").glob("*.dockerignore")), "Docker would read it in place of the one above"


def test_the_password_of_the_gradebook_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The commands of docs/hub.md, where an earlier version of the page has left a file that everybody can read."""
    page = (ROOT / "docs" / "hub.md").read_text()
    commands = [line for line in page.splitlines() if line.startswith("    ") and ".env" in line]
    (tmp_path / ".env").write_text("GRADEBOOK_PASSWORD=before\n")
    (tmp_path / ".env").chmod(0o644)
    subprocess.run(["sh", "-euc", "umask 022\n" + "\n".join(commands)], cwd=tmp_path, check=True)
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"GRADEBOOK_PASSWORD=[0-9a-f]{32}\n", (tmp_path / ".env").read_text())
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"deploy/.env", "deploy/class/"} <= set(ignored), "git would keep the class"


LEFT_BEHIND = (
    *(".env", ".env.local", "class.env", ".autograder_secret", "id_ed25519", "key.pem", "server.key", "client_secret"),
    *("gradebook.db", "gradebook.db-journal", "jupyterhub.sqlite", "jupyterhub.sqlite-wal", "jupyterhub_cookie_secret"),
    *("passwords.csv", "grades.csv", "class.csv", "backup.tar.gz", "lesson.zip", "notes.txt~", "core.1234", "hub.log"),
    *(".git/config", ".venv/lib/package.py", ".build/gates/passed.json", ".ipynb_checkpoints/lesson.py"),
    *("submitted/ann/lesson/lesson.ipynb", "submitted/ann/lesson/timestamp.csv", "autograded/ann/lesson/lesson.ipynb"),
    *("release/lesson/lesson.ipynb", "source/lesson/lesson.ipynb", "feedback/ann/lesson/lesson.html"),
    *("exchange/class/inbound/ann+lesson/lesson.ipynb", "workspace/lesson/lesson.ipynb", "reports/lesson.html"),
    *("node_modules/some/package.json", "__pycache__/module.py", "class/course/gradebook.db", "hub/jupyterhub.sqlite"),
)
"""What classes, people and programs leave in a checkout."""


def test_nothing_that_a_class_leaves_in_the_checkout_enters_the_image(tmp_path: Path) -> None:
    known = known_to_git()
    folders = {parent for name in known for parent in Path(name).parents} | {Path("deploy/class"), Path("workspace")}
    for name in [*known, *(str(folder / left) for folder in folders for left in LEFT_BEHIND)]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / ".dockerignore", tmp_path)
    assert image_of(tmp_path) - set(known) == set()
