#!/bin/sh
# Makes the accounts of the class list and starts the hub. Run it as root. What holds the solutions and the hidden tests
# in the checkout is closed to students.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
PATH="$here/../../.venv/bin:$PATH"
python "$here/accounts.py"
for folder in course/lessons tests .git; do
  if [ -e "$here/../../$folder" ]; then
    chgrp grader "$here/../../$folder"
    chmod 750 "$here/../../$folder"
  fi
done
cd "${CLASS_FOLDER:-/srv/class}"
exec jupyterhub -f "$here/jupyterhub_config.py"
