#!/usr/bin/env bash
# Pin requirements/dev.in with the hashes of every file of each release, and no trace of where they came from.
# Arguments go to `uv pip compile`: --upgrade, --upgrade-package NAME.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet uv

{
    echo "# Compiled from dev.in by \`make requirements\`; do not edit."
    # A copy as the starting point keeps present pins unless asked to upgrade.
    cp requirements/dev.txt "$scratch/dev.txt" 2>/dev/null || true
    "$scratch/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-annotate --no-header "$@" --output-file "$scratch/dev.txt" requirements/dev.in >/dev/null
    cat "$scratch/dev.txt"
} >"$scratch/out.txt"

if grep -nE '://|--(index-url|extra-index-url|find-links|trusted-host)' "$scratch/out.txt"; then
    echo "the compiled file names a package index" >&2
    exit 1
fi
cp "$scratch/out.txt" requirements/dev.txt
