"""The order of a proof: every prefix, every guard on the whole series, then every guard without its patch.

Neighbours differ in few files, so that little is compiled between them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tqforge.core.values import AppliedPatch
from tqforge.proof import metal_guard
from tqforge.proof.record import GuardProof, PrefixProof
from tqforge.proof.results import GuardResult, GuardStatus
from tqforge.proof.runner import ProofRunner
from tqforge.proof.without import LeaveOneOut
from tqforge.series.patchfile import PatchFile
from tqforge.series.series import title_of
from tqforge.series.trailers import GUARD, Guard

#: What every prefix must compile, and the cheap test that it must pass.
PREFIX_TARGETS = ("llama", "llama-bench", "llama-completion", "test-quantize-fns")
PREFIX_TEST = Guard("test-quantize-fns", ())
#: On the Metal emulator, after a patch of the Metal backend: upstream's own cases of the operations it changes.
METAL_TESTS = (
    Guard.parse("metal-emulator ops -o SET_ROWS -p type_src=f32,type_dst=q4_0"),
    Guard.parse(
        "metal-emulator ops -o FLASH_ATTN_EXT "
        "-p hsk=64,hsv=64,nh=4,nr23=.1,1.,kv=113,nb=3,mask=1,sinks=1,max_bias=0.000000,.*type_K=f16,type_V=f16"
    ),
)


class ProgressListener(Protocol):
    """Receives progress events of a proof."""

    def begin(self, label: str) -> None:
        """A step begins."""

    def end(self, result: GuardResult, *, recorded: bool) -> None:
        """A step ended; `recorded` says that its result was cached."""


@dataclass(frozen=True)
class Item:
    """One patch of the series with its position."""

    number: int
    patch: AppliedPatch
    parsed: PatchFile

    @property
    def title(self) -> str:
        return title_of(self.patch.name)

    @property
    def only_tests(self) -> bool:
        return all(path.startswith("tests/") for path in self.parsed.paths())

    @property
    def guards(self) -> list[Guard]:
        return [Guard.parse(value) for key, value in self.parsed.trailers if key == GUARD]

    @property
    def prefix_tests(self) -> list[tuple[tuple[str, ...], Guard]]:
        """The tests of the prefix that ends here, with the targets to build."""
        metal = METAL_TESTS if metal_guard.concerns(self.parsed.paths()) else ()
        return [(PREFIX_TARGETS, PREFIX_TEST), *(((metal_guard.PROGRAM,), guard) for guard in metal)]


def length(items: Sequence[Item], *, prefixes: bool, guards: bool) -> int:
    """Return the number of steps."""
    first = sum(len(item.prefix_tests) for item in items) if prefixes else 0
    return first + (2 * sum(len(item.guards) for item in items) if guards else 0)


@dataclass(frozen=True)
class Schedule:
    """Runs the tests of a series in order."""

    series: Sequence[Item]
    runner: ProofRunner
    listener: ProgressListener

    def prefixes(self, items: Sequence[Item]) -> tuple[PrefixProof, ...]:
        """Check that each prefix compiles and passes the cheap tests."""
        return tuple(
            PrefixProof(
                patch=item.title,
                result=self._run(f"prefix up to {item.title}: {guard}", item.patch.tree, targets, guard),
            )
            for item in items
            for targets, guard in item.prefix_tests
        )

    def guards(self, items: Sequence[Item]) -> tuple[GuardProof, ...]:
        """Run each guard on the whole series, then without its patch."""
        tests = [(item, guard) for item in items for guard in item.guards]
        final = self.series[-1].patch.tree
        whole = [self._guard(f"{item.title}: {guard}", final, guard) for item, guard in tests]
        with tempfile.TemporaryDirectory(prefix="tqforge-prove-") as scratch:
            applied = [item.patch for item in self.series]
            only_tests = frozenset(item.number for item in self.series if item.only_tests)
            others = LeaveOneOut(self.runner.repository, applied, only_tests, Path(scratch))
            return tuple(
                self._without(item, guard, with_it, others) for (item, guard), with_it in zip(tests, whole, strict=True)
            )

    def _without(self, item: Item, guard: Guard, with_it: GuardResult, others: LeaveOneOut) -> GuardProof:
        label, name = f"without {item.title}: {guard}", str(guard)
        if with_it.status is not GuardStatus.PASSED:
            self.listener.begin(f"{label}: not run, because with the patch it {with_it.status}")
            return GuardProof(patch=item.title, guard=name, with_patch=with_it, without_patch=None, note=with_it.detail)
        variant = others.without(item.number)
        result = self._guard(label, variant.tree, guard)
        if result.status is GuardStatus.BUILD_FAILED:
            # later patches may need it, which a merge cannot know: run the test on a tree that compiles
            before = others.before(item.number, (f"later patches ({result.detail.splitlines()[0]})",))
            if before.tree != variant.tree:
                ran = self._guard(f"before {item.title}: {guard}", before.tree, guard)
                variant, result = (before, ran) if ran.status is GuardStatus.FAILED else (variant, result)
        return GuardProof(
            patch=item.title,
            guard=name,
            with_patch=with_it,
            without_patch=result,
            how=variant.how,
            needed_by=variant.blockers,
        )

    def _guard(self, label: str, tree: str, guard: Guard) -> GuardResult:
        target = metal_guard.PROGRAM if guard.on_metal_emulator else guard.program
        return self._run(label, tree, (target,), guard)

    def _run(self, label: str, tree: str, targets: tuple[str, ...], guard: Guard) -> GuardResult:
        self.listener.begin(label)
        known = self.runner.recorded(tree, targets, guard)
        result = known or self.runner.run(tree, targets, guard)
        self.listener.end(result, recorded=known is not None)
        return result
