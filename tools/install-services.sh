#!/usr/bin/env bash
# Install the servers that tests need and that no wheel carries, from Debian, only when missing and only as root.
# The tests start their own instance in a temporary directory; the system's cluster is neither created nor started.
set -euo pipefail

if compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
    exit 0
fi
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "no system PostgreSQL here and no way to install one: its tests will be skipped" >&2
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
mkdir -p /etc/postgresql-common
created=0
if [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    created=1
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold postgresql >/dev/null
if [[ $created -eq 1 ]]; then
    rm -f /etc/postgresql-common/createcluster.conf
fi
