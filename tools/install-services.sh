#!/usr/bin/env bash
# Install the servers that tests need and that no wheel carries: from Debian, only when missing, only as root.
# Tests start an instance of their own in a temporary directory; no system cluster is created or started.
set -euo pipefail

if [[ -x /usr/lib/postgresql/15/bin/initdb ]]; then
    exit 0
fi
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "PostgreSQL 15 is missing and cannot be installed here: its tests will be skipped" >&2
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
config=/etc/postgresql-common/createcluster.conf
if [[ ! -e $config ]]; then
    mkdir -p "$(dirname "$config")"
    echo 'create_main_cluster = false' >"$config"
fi
apt-get update -qq || true
if ! apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold postgresql-15 >/dev/null; then
    echo "PostgreSQL 15 could not be installed: its tests will be skipped" >&2
fi
