"""Cut supports_op out of ggml-metal-device.m: it is plain C inside an Objective-C file.

The static functions and tables it needs, directly or not, come along, so a patch may add helpers; so do the file's ggml
headers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ENTRY = "ggml_metal_device_supports_op"
FUNCTION = re.compile(
    r"^(?:static\s+)?(?:inline\s+)?[\w ]+?[\s*](?P<name>ggml_metal_\w+)\([^;{]*\)\s*\{\n.*?^\}\n", re.M | re.S
)
TABLE = re.compile(r"^static const \w+(?: \w+)* (?P<name>\w+)\[\w*\] = \{.*?^\};\n", re.M | re.S)


def definitions(text: str) -> dict[str, re.Match[str]]:
    return {m["name"]: m for pattern in (TABLE, FUNCTION) for m in pattern.finditer(text)}


def extract(text: str, name: str, entry: str = ENTRY) -> str:
    """Return the function and what it needs, in the order of the file."""
    known = definitions(text)
    if entry not in known:
        raise LookupError(f"{entry} is not defined in this file")
    needed: dict[str, re.Match[str]] = {}
    queue = [entry]
    while queue:
        function = queue.pop()
        if function in needed:
            continue
        needed[function] = known[function]
        queue += [word for word in re.findall(r"\w+", known[function][0]) if word in known]
    parts = [f"#include {header}" for header in re.findall(r'^#(?:import|include) ("ggml[^"]*")', text, re.M)]
    for match in sorted(needed.values(), key=lambda m: m.start()):
        body = match[0]
        if "@" in re.sub(r'"[^"]*"|//[^\n]*', "", body) or re.search(r"\[\w+ \w+", body):
            raise LookupError(f"{match['name']} is Objective-C: it cannot be taken over as it stands")
        line = text.count("\n", 0, match.start()) + 1
        parts.append(f'#line {line} "{name}"\n{body}')
    return "\n".join(parts)


def main(source: str, target: str) -> int:
    text = extract(Path(source).read_text(encoding="utf-8"), source)
    out = Path(target)
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
