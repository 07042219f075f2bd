"""JupyterHub for one class on one machine: accounts of the system, nbgrader's exchange, a page for instructors, and
`autograder watch`, which answers what students hand in.

Run `accounts.py` first, as root; then, as root too: jupyterhub -f deploy/jupyterhub/jupyterhub_config.py
docs/hub.md says what to put where. These variables of the environment matter, all of them optional:

CLASS_FOLDER      the class list, the course and the exchange; /srv/class where nothing is said
HUB_PORT          where the hub listens; 8000. The three ports after it are for its parts, on this machine alone
HUB_ADDRESS       on which address of the machine; all of them
GRADEBOOK         nbgrader's gradebook, such as postgresql+psycopg://grader:...@db/gradebook; SQLite in the course
SUBDOMAIN_HOST    the hub's address if its subdomains lead to it too; each server then has an origin of its own
ATTEMPTS_PER_DAY  how many attempts of a student at one lesson are graded on a day; all of them
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

from jupyterhub.utils import subdomain_hook_idna
from traitlets.log import get_logger

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from accounts import COURSE, GRADER, class_folder, class_list  # noqa: E402

c = get_config()  # noqa: F821  (JupyterHub provides it)

folder = class_folder()
people = class_list(folder)
instructors = {person.name for person in people if person.role == "instructor"}
programs = Path(sys.executable).parent
paths = os.pathsep.join([str(programs), os.environ.get("PATH", "")])


def variables(who: str, **more: str) -> dict[str, str]:
    """The environment of a server: our programs, and the configuration of everybody and of this role."""
    configuration = os.pathsep.join(str(HERE / part) for part in (who, "everybody"))
    return {"PATH": paths, "JUPYTER_CONFIG_PATH": configuration, "CLASS_FOLDER": str(folder), **more}


def first_page(page: Any) -> str:
    """Where somebody goes after the login: instructors to the course, students to their own server."""
    return course_page if page.current_user and page.current_user.name in instructors else ""


# With a subdomain for each server, what a student's server shows is a stranger to all others for a browser.
course_page = "/services/course/"
c.JupyterHub.subdomain_host = host = os.environ.get("SUBDOMAIN_HOST", "")
if match := re.fullmatch(r"(https?://)([\w.-]+(?::\d+)?)", host):
    course_page = match[1] + subdomain_hook_idna("course", match[2], "service") + course_page
elif host:
    sys.exit(f"SUBDOMAIN_HOST is {host!r}. It has to be like https://hub.example.edu, without a path.")
else:
    get_logger().warning(
        "All servers of this hub have one origin, so a page that a student serves below /user/NAME/ can act in the "
        "course as the instructor who opens it. docs/hub.md says how to set SUBDOMAIN_HOST, and what to do without it."
    )

port = int(os.environ.get("HUB_PORT", "8000"))
c.JupyterHub.bind_url = f"http://{os.environ.get('HUB_ADDRESS', '')}:{port}"
c.JupyterHub.hub_port = port + 1
# What the hub writes (accounts, hashes of tokens, the secret of cookies, and copies of these) is for root alone.
own = folder / "hub"
own.mkdir(mode=0o700, exist_ok=True)
own.chmod(0o700)
for path in folder.glob("jupyterhub*"):  # where earlier versions wrote it, for all to read
    path.replace(own / path.name)
c.JupyterHub.db_url = f"sqlite:///{own / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(own / "jupyterhub_cookie_secret")
c.JupyterHub.cleanup_servers = False  # students go on working while the hub starts again
c.ConfigurableHTTPProxy.command = [str(HERE / "node_modules" / ".bin" / "configurable-http-proxy")]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{port + 2}"
c.ConfigurableHTTPProxy.pid_file = str(own / "jupyterhub-proxy.pid")

# Names and passwords are those of the system. docs/hub.md names what to change for single sign-on.
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allowed_users = {person.name for person in people}
c.JupyterHub.spawner_class = "localprocess"
c.Spawner.default_url = "/lab"
c.Spawner.environment = variables("student")
c.Spawner.cmd = [str(programs / "jupyterhub-singleuser")]

# The course belongs to an account of its own. Instructors share its JupyterLab, with Formgrader in it.
instructors_page = {
    "name": "course",
    "url": f"http://127.0.0.1:{port + 3}",
    "command": [str(programs / "jupyterhub-singleuser"), "--ServerApp.default_url=/lab"],
    "user": GRADER,
    "cwd": str(folder / COURSE),
    "oauth_no_confirm": True,
    "environment": variables("instructor", GRADEBOOK=os.environ.get("GRADEBOOK", "")),
}
attempts = os.environ.get("ATTEMPTS_PER_DAY")
answers = {
    "name": "watch",
    "command": [
        *(str(programs / "autograder"), "watch", "--course", str(folder / COURSE)),
        *(["--attempts-per-day", attempts] if attempts else []),
    ],
    "user": GRADER,
    "cwd": str(folder / COURSE),
    "environment": variables("instructor", GRADEBOOK=os.environ.get("GRADEBOOK", "")),
}
c.JupyterHub.default_url = first_page
c.JupyterHub.services = [instructors_page, answers]
c.JupyterHub.load_groups = {"instructors": {"users": sorted(instructors)}}
c.JupyterHub.load_roles = [
    {"name": "instructor", "groups": ["instructors"], "scopes": ["self", "access:services!service=course"]},
]
