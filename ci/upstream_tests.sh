#!/usr/bin/env bash
# The native tests and llama.cpp's own tests of the type, on the build in the workspace. Nothing run is a failure.
set -euo pipefail

tqforge run -- test-tq3_0
tqforge run -- test-fa-paths 3
tqforge run -- test-quantize-fns
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for op in GET_ROWS SET_ROWS CPY MUL_MAT FLASH_ATTN_EXT; do
    tqforge run -- test-backend-ops test -b CPU -o "$op" -p tq3_0 >"$log" 2>&1 || { tail -40 "$log"; exit 1; }
    # upstream's own count: "  24/24 tests passed"
    count=$(grep -oE '[0-9]+/[0-9]+ tests passed' "$log" | tail -1 || true)
    printf 'test-backend-ops CPU %s: %s\n' "$op" "${count:-no case run}"
    [[ $count =~ ^([1-9][0-9]*)/([0-9]+)\  ]] && [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
done
