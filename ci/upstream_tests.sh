#!/usr/bin/env bash
# llama.cpp's own test programs for the type, from the build in the workspace. Nothing run is a failure.
set -euo pipefail

tqforge run -- test-tq3_0
tqforge run -- test-quantize-fns
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for op in GET_ROWS SET_ROWS CPY MUL_MAT FLASH_ATTN_EXT; do
    tqforge run -- test-backend-ops test -b CPU -o "$op" -p tq3_0 >"$log" 2>&1 || { tail -40 "$log"; exit 1; }
    passed=$(grep -c "OK" "$log" || true)
    failed=$(grep -c "FAIL" "$log" || true)
    printf 'test-backend-ops CPU %s: %d passed, %d failed\n' "$op" "$passed" "$failed"
    [ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
done
