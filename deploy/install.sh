#!/bin/sh
# Installs what the course needs on a machine or image with Debian or Ubuntu, as root: system packages, and in .venv the
# locked packages of a set (course, grading, hub, dev; by default grading). With `hub` it installs JupyterHub's proxy,
# too. Containers run nothing else.
set -eu
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive
packages="python3 python3-venv git make bubblewrap"
# A Node.js that is there may come from elsewhere, and Debian's npm conflicts with it.
if [ "${1:-}" = hub ] && ! command -v npm > /dev/null; then
    packages="$packages nodejs npm"
fi
apt-get update -qq
apt-get install -qq -y --no-install-recommends $packages
python3 bootstrap.py environment "${1:-grading}"
if [ "${1:-}" = hub ]; then
    npm ci --silent --prefix deploy/jupyterhub
fi
