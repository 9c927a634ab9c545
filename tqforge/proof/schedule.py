"""The way of a proof through the trees: prefixes, the whole series with every guard, then the drops.

All of it happens in one build folder. Neighbours differ in few files, so that little is compiled between them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tqforge.core.values import AppliedPatch
from tqforge.proof import metal_guard, without
from tqforge.proof.record import Proof
from tqforge.proof.runner import Bench, Seen, Verdict
from tqforge.series.patchfile import PatchFile
from tqforge.series.trailers import GUARD, Guard

#: What every prefix must compile, and the cheap tests that it must pass.
PREFIX_TARGETS = ("llama", "llama-bench", "llama-completion", "test-quantize-fns")
PREFIX_TEST = Guard("test-quantize-fns", ())
#: On the Metal emulator, after a patch of the Metal backend: upstream's own cases of what the series changes.
METAL_TESTS = (
    Guard.parse("metal-emulator ops -o SET_ROWS -p type_src=f32,type_dst=q4_0"),
    Guard.parse(
        "metal-emulator ops -o FLASH_ATTN_EXT "
        "-p hsk=64,hsv=64,nh=4,nr23=.1,1.,kv=113,nb=3,mask=1,sinks=1,max_bias=0.000000,.*type_K=f16,type_V=f16"
    ),
)


class Teller(Protocol):
    """Whoever follows the walk."""

    def begin(self, label: str) -> None:
        """A step begins."""

    def end(self, seen: Seen, *, recorded: bool) -> None:
        """A step ended, or its result was recorded earlier."""


@dataclass(frozen=True)
class Item:
    """A patch of the series in its place."""

    number: int
    patch: AppliedPatch
    parsed: PatchFile

    @property
    def title(self) -> str:
        return self.patch.name.removesuffix(".patch")

    @property
    def only_tests(self) -> bool:
        return all(path.startswith("tests/") for path in self.parsed.paths())

    @property
    def guards(self) -> list[Guard]:
        return [Guard.parse(value) for key, value in self.parsed.trailers if key == GUARD]

    @property
    def prefix_tests(self) -> list[tuple[str, Guard]]:
        """The tests of the prefix that ends here, each with its program's target."""
        return [(PREFIX_TEST.program, PREFIX_TEST)] + [
            (metal_guard.PROGRAM, guard) for guard in METAL_TESTS if metal_guard.concerns(self.parsed.paths())
        ]


def length(items: Sequence[Item], *, prefixes: bool, guards: bool) -> int:
    """How many steps a walk has."""
    first = sum(len(item.prefix_tests) for item in items) if prefixes else 0
    return first + (2 * sum(len(item.guards) for item in items) if guards else 0)


@dataclass(frozen=True)
class Walk:
    """A walk over the trees of a series."""

    applied: Sequence[AppliedPatch]
    tests: frozenset[int]  # the patches that bring nothing but tests
    bench: Bench
    teller: Teller

    def prefixes(self, items: Sequence[Item]) -> list[tuple[str, Seen]]:
        """Each prefix compiles and passes the cheap tests."""
        found = []
        for item in items:
            for target, guard in item.prefix_tests:
                targets = PREFIX_TARGETS if guard is PREFIX_TEST else (target,)
                test = f"prefix: {', '.join(targets)}; {self.bench.name(guard)}"
                seen = self._see(f"prefix up to {item.title}: {guard}", item.patch.tree, test, targets, guard)
                found.append((item.title, seen))
        return found

    def guards(self, items: Sequence[Item]) -> list[Proof]:
        """Each guard on the whole series, then without its patch."""
        tests = [(item, guard) for item in items for guard in item.guards]
        final = self.applied[-1].tree
        whole = [self._guard(f"{item.title}: {guard}", final, guard) for item, guard in tests]
        with tempfile.TemporaryDirectory(prefix="tqforge-prove-") as scratch:
            series = without.Series(self.bench.repository, self.applied, self.tests, Path(scratch))
            return [
                self._drop(item, guard, with_it, series) for (item, guard), with_it in zip(tests, whole, strict=True)
            ]

    def _drop(self, item: Item, guard: Guard, with_it: Seen, series: without.Series) -> Proof:
        label = f"without {item.title}: {guard}"
        if with_it.verdict is not Verdict.GREEN:
            self.teller.begin(f"{label}: left out, because it is {with_it.verdict} with the patch")
            return Proof(item.title, str(guard), with_it, None, note=with_it.detail)
        variant = series.without(item.number)
        seen = self._guard(label, variant.tree, guard)
        if seen.verdict is Verdict.RED_BUILD:
            # later patches may need it, which a merge cannot know: look at the test where it would compile
            other = series.before(item.number, (f"later patches ({seen.detail.splitlines()[0]})",))
            ran = (
                seen if other.tree == variant.tree else self._guard(f"before {item.title}: {guard}", other.tree, guard)
            )
            if ran.verdict is Verdict.RED:
                variant, seen = other, ran
        return Proof(item.title, str(guard), with_it, seen, variant.how, needed_by=variant.blockers)

    def _guard(self, label: str, tree: str, guard: Guard) -> Seen:
        target = metal_guard.PROGRAM if guard.on_metal_emulator else guard.program
        return self._see(label, tree, self.bench.name(guard), (target,), guard)

    def _see(self, label: str, tree: str, test: str, targets: Sequence[str], guard: Guard) -> Seen:
        self.teller.begin(label)
        known = self.bench.ledger.get(tree, test)
        seen = known or self.bench.see(tree, test, targets, run=guard)
        self.teller.end(seen, recorded=known is not None)
        return seen
