#!/bin/sh
# scripts/ops_doc.sh [--check] - writes docs/ops.md from core/ir/ops.def; with --check only says
# whether it is up to date (status 1 when it is not).
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"${CC:-cc}" -std=c17 -I. scripts/ops_doc.c -o "$out/ops_doc"
"$out/ops_doc" | sed 's/ | PLM_OPF_/ /g; s/ \\| PLM_OPF_/ /g' >"$out/ops.md"
if [ "${1:-}" = --check ]; then
    cmp -s "$out/ops.md" docs/ops.md || {
        echo "docs/ops.md is older than core/ir/ops.def: run scripts/ops_doc.sh" >&2
        exit 1
    }
else
    cp "$out/ops.md" docs/ops.md
fi
