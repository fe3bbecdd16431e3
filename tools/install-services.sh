#!/usr/bin/env bash
# Install the programs that tests need and that no wheel carries: from Debian, only when missing, only as root.
# Tests start an instance of their own in a temporary directory; no system cluster is created or started.
set -euo pipefail

missing=()
[[ -x /usr/lib/postgresql/15/bin/initdb ]] || missing+=(postgresql-15)
command -v faketime >/dev/null || missing+=(faketime)
if [[ ${#missing[@]} -eq 0 ]]; then
    exit 0
fi
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "missing, and cannot be installed here: ${missing[*]}; tests that need them will be skipped" >&2
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
config=/etc/postgresql-common/createcluster.conf
if [[ ! -e $config ]]; then
    mkdir -p "$(dirname "$config")"
    echo 'create_main_cluster = false' >"$config"
fi
apt-get update -qq || true
for package in "${missing[@]}"; do
    if ! apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold "$package" >/dev/null; then
        echo "$package could not be installed: tests that need it will be skipped" >&2
    fi
done
