"""Read where the scheduler puts each op, from what it prints with GGML_SCHED_DEBUG=2.

    ## SPLIT #0: CPU # 0 inputs
    node #  0 (  GET_ROWS):             inp_embd (  54K) [  CPU         ] use=1,c=1: ...

Names are cut there: FLASH_ATTN stands for FLASH_ATTN_EXT.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from tqforge.adapters.llama.api.messages import Message

#: Environment that makes the scheduler print its graphs.
SWITCH = {"GGML_SCHED_DEBUG": "2"}
SET_ROWS, ATTENTION = "SET_ROWS", "FLASH_ATTN"

_SPLIT = re.compile(r"^## SPLIT #(\d+): (\S+) # \d+ inputs")
_NODE = re.compile(r"^node #\s*\d+ \(\s*(\S.*?)\):\s+(.*?) \(\s*\S+\) \[\s*(\S+)\s.*?\] use=")


class Nodes(Message):
    """The nodes of one op on one backend, and the name of the first."""

    op: str
    backend: str
    count: int
    first: str


class Graph(Message):
    """One scheduled graph."""

    splits: int
    backends: tuple[str, ...]
    nodes: tuple[Nodes, ...]


@dataclass
class _Open:
    """A graph whose lines are still being read."""

    splits: int = 0
    backends: set[str] = field(default_factory=set)
    ops: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: dict[tuple[str, str], str] = field(default_factory=dict)

    def graph(self) -> Graph:
        nodes = (
            Nodes(op=op, backend=backend, count=count, first=self.names[op, backend])
            for (op, backend), count in sorted(self.ops.items())
        )
        return Graph(splits=self.splits, backends=tuple(sorted(self.backends)), nodes=tuple(nodes))


class SchedulerLog:
    """Collects one Graph per scheduled graph from the lines of the log."""

    def __init__(self) -> None:
        self._graphs: list[_Open] = []

    def __call__(self, line: str) -> bool:
        """Take a line of the log; return False when it does not describe a graph."""
        if found := _SPLIT.match(line):
            if found[1] == "0":
                self._graphs.append(_Open())
            if self._graphs:
                self._graphs[-1].splits += 1
                self._graphs[-1].backends.add(found[2])
            return True
        if not line.startswith("node #"):
            return False
        if self._graphs and (found := _NODE.match(line)):
            op, name, backend = found.groups()
            self._graphs[-1].ops[op, backend] += 1
            self._graphs[-1].names.setdefault((op, backend), name.strip())
        return True

    def take(self) -> tuple[Graph, ...]:
        """Return the graphs since the last call."""
        graphs, self._graphs = self._graphs, []
        return tuple(graph.graph() for graph in graphs)
