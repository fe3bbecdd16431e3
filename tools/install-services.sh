#!/usr/bin/env bash
# Install the programs that tests need and that no wheel carries: from Debian, only when missing, only as root.
# Tests start an instance of their own in a temporary directory; no system service is created or started.
set -euo pipefail

missing=()
[[ -x /usr/lib/postgresql/15/bin/initdb ]] || missing+=(postgresql-15)
[[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]] || missing+=(rabbitmq-server)
[[ -d /usr/share/activemq/lib ]] && command -v java >/dev/null || missing+=(activemq default-jre-headless)
command -v chromium >/dev/null || missing+=(chromium)
command -v groff >/dev/null || missing+=(groff-base)
compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(faketime)
command -v prometheus >/dev/null && command -v promtool >/dev/null || missing+=(prometheus)
if [[ ${#missing[@]} -eq 0 ]]; then
    exit 0
fi
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "${missing[*]}: missing and cannot be installed here: their tests will be skipped" >&2
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
config=/etc/postgresql-common/createcluster.conf
if [[ ! -e $config ]]; then
    mkdir -p "$(dirname "$config")"
    echo 'create_main_cluster = false' >"$config"
fi
# Packages of servers start them; while this file is there they do not.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
fi
apt-get update -qq || true
options=(-y -qq --no-install-recommends -o Dpkg::Options::=--force-confold)
for package in "${missing[@]}"; do
    if ! apt-get install "${options[@]}" "$package" >/dev/null; then
        echo "$package could not be installed: its tests will be skipped" >&2
    fi
done
