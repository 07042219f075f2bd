"""Which files the lab asks for again on a later visit, and what it has without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from docs.site.lab import DISTRIBUTION_POINT, HERE, LOCK, PYODIDE

LAB = "https://a.site/lab/"
KEPT_FOR_GOOD = [
    f"{LAB}build/100.5a28c9e.js",
    f"{LAB}build/lab/bundle.js?_=7a7e3d6",
    f"{LAB}extensions/anywidget/static/remoteEntry.698dcaf7.js",
    f"{LAB}extensions/kernel/static/pypi/piplite-0.7.2-py3-none-any.whl?sha256={'d4147101' * 8}",
    f"{LAB}{PYODIDE}/pyodide.asm.wasm",
    f"{LAB}{PYODIDE}/python_stdlib.zip",
    f"{DISTRIBUTION_POINT}pyodide.js",
]
ASKED_ANEW = [
    f"{LAB}jupyter-lite.json",
    f"{LAB}keep.js",
    f"{LAB}files/02_scalar_engine/02_scalar_engine.ipynb",
    f"{LAB}extensions/anywidget/static/style.js",
    f"{LAB}{PYODIDE}/{LOCK}",
]
WHEEL = f"{LAB}{PYODIDE}/mini_autograd_course-0.1.0-py3-none-any.whl"


def answers(*requests: dict[str, str | None]) -> list[str]:
    """What the service worker answers to these requests, one after another: see service_worker.mjs."""
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    script = Path(__file__).with_name("service_worker.mjs")
    command = ["node", str(script), str(HERE / "lab" / "service-worker.js"), json.dumps(requests)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return list(json.loads(ran.stdout))


def asked(url: str, network: str | None, wanted: str = "", mode: str = "cors") -> dict[str, str | None]:
    """A request for an address, while this text lies there, by a page that wants this text."""
    digest = base64.b64encode(hashlib.sha256(wanted.encode()).digest()).decode()
    return {"url": url, "network": network, "mode": mode, "integrity": f"sha256-{digest}" if wanted else ""}


def test_what_has_a_hash_or_a_version_in_its_address_is_asked_for_once() -> None:
    again = answers(*(asked(url, text) for url in KEPT_FOR_GOOD for text in ("first", "second", None)))
    assert again == ["first"] * 3 * len(KEPT_FOR_GOOD)


def test_all_else_is_asked_for_anew_while_there_is_a_network() -> None:
    again = answers(*(asked(url, text) for url in ASKED_ANEW for text in ("first", "second", None)))
    assert again == ["first", "second", "second"] * len(ASKED_ANEW)


def test_a_wheel_is_asked_for_again_if_the_page_wants_another_one() -> None:
    visits = [("old", "old"), ("changed by mistake", "old"), ("new", "new"), (None, "new")]
    assert answers(*(asked(WHEEL, there, wanted) for there, wanted in visits)) == ["old", "old", "new", "new"]


def test_without_a_network_one_page_opens_all_notebooks() -> None:
    page = f"{LAB}lab/index.html?path="
    assert answers(asked(f"{page}02", "page", mode="navigate"), asked(f"{page}03", None, mode="navigate"))[1] == "page"
