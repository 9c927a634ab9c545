"""Where the scheduler puts each op: what it prints with GGML_SCHED_DEBUG=2, read line by line.

    ## SPLIT #0: CPU # 0 inputs
    node #  0 (  GET_ROWS):             inp_embd (  54K) [  CPU         ] use=1,c=1: ...

Names are cut there: FLASH_ATTN stands for FLASH_ATTN_EXT.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

#: The environment variable that makes the scheduler say it, and its value.
SWITCH = {"GGML_SCHED_DEBUG": "2"}
SET_ROWS, ATTENTION = "SET_ROWS", "FLASH_ATTN"

_SPLIT = re.compile(r"^## SPLIT #(\d+): (\S+) # \d+ inputs")
_NODE = re.compile(r"^node #\s*\d+ \(\s*(\S.*?)\):\s+(.*?) \(\s*\S+\) \[\s*(\S+)\s.*?\] use=")


class Placement:
    """One entry per graph: its splits, and for each op how many nodes stand on which backend."""

    def __init__(self) -> None:
        self._graphs: list[dict[str, Any]] = []

    def __call__(self, line: str) -> bool:
        """Take a line of the log; False when it says nothing about placement."""
        if found := _SPLIT.match(line):
            if found[1] == "0":
                self._graphs.append({"splits": 0, "backends": set(), "ops": Counter(), "names": {}})
            if self._graphs:
                self._graphs[-1]["splits"] += 1
                self._graphs[-1]["backends"].add(found[2])
            return True
        if not line.startswith("node #"):
            return False
        if self._graphs and (found := _NODE.match(line)):
            op, name, backend = found.groups()
            self._graphs[-1]["ops"][op, backend] += 1
            self._graphs[-1]["names"].setdefault((op, backend), name.strip())
        return True

    def take(self) -> list[dict[str, Any]]:
        """The graphs since the last call, as plain values."""
        graphs, self._graphs = self._graphs, []
        return [
            {
                "splits": graph["splits"],
                "backends": sorted(graph["backends"]),
                "nodes": [
                    {"op": op, "backend": backend, "count": count, "first": graph["names"][op, backend]}
                    for (op, backend), count in sorted(graph["ops"].items())
                ],
            }
            for graph in graphs
        ]
