#!/bin/sh
# Makes the accounts of the class list and starts the hub. Run it as root.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
PATH="$here/../../.venv/bin:$PATH"
python "$here/accounts.py"
cd "${CLASS_FOLDER:-/srv/class}"
exec jupyterhub -f "$here/jupyterhub_config.py"
