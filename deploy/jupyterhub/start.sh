#!/bin/sh
# Makes the accounts of the class list, closes the checkout to students, and starts the hub. Run it as root.
set -eu
umask 022 # a stricter one would close what goes into the exchange to those whom it is for
here="$(cd "$(dirname "$0")" && pwd)"
PATH="$here/../../.venv/bin:$PATH"
python "$here/accounts.py"
cd "${CLASS_FOLDER:-/srv/class}"
exec jupyterhub -f "$here/jupyterhub_config.py"
