#!/usr/bin/env bash
# Check the format of the C++ of metal/, or apply it with --fix.
set -euo pipefail
mapfile -t files < <(find metal \( -name '*.cpp' -o -name '*.h' \) -print | sort)
[ "${#files[@]}" -gt 0 ] || { echo "no C++ files found"; exit 1; }
if [ "${1:-}" = --fix ]; then
    clang-format -i "${files[@]}"
else
    clang-format --dry-run -Werror "${files[@]}"
    echo "${#files[@]} C++ files are formatted"
fi
