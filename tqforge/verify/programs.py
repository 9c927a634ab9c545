"""Further parts of the build under test, made when a stage asks for them: test programs, and the Metal emulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tqforge import resources
from tqforge.adapters import toolchain
from tqforge.adapters.git import Repository
from tqforge.build import builder, cmake_plan, compiler_log, metal_emulator
from tqforge.build.builder import Built
from tqforge.build.metal_emulator import Recipe
from tqforge.core.reporter import Reporter
from tqforge.errors import CheckoutError
from tqforge.workspace import Workspace


@dataclass(frozen=True)
class BuildPrograms:
    """Programs of a build that are compiled on request. The caller holds the workspace lock."""

    workspace: Workspace

    reporter: Reporter
    built: Built

    def program(self, name: str) -> Path:
        """Build a program. Raises BuildError, or CheckoutError if the source has changed since the build."""
        self._same_source()
        builder.ensure_targets(
            self.workspace, self.reporter, self.built, [name]
        )  # one that is there may be of an earlier tree
        return self.built.bin / name

    def emulator(self, recipe: Recipe) -> Path:
        """The folder of the Metal emulator for the build's source, compiled unless it is there."""
        self._same_source()
        stamp = self.built.stamp
        library = (self.built.bin / "libggml-base.so").resolve().stat()
        source = metal_emulator.Source(
            tree=Path(stamp.checkout),
            libraries=self.built.bin,
            key=f"{stamp.tree} {library.st_size} {library.st_mtime_ns}",
        )
        with self.reporter.meter("compiling the Metal emulator", 1.0) as meter:

            def progress(line: str) -> None:
                if step := compiler_log.step(line):
                    meter.update(step.done / step.total, f"{step.done}/{step.total} {step.what}")

            return self._builder().build(recipe, source, self._tell, progress)

    def _builder(self) -> metal_emulator.Builder:
        return metal_emulator.Builder(
            project=resources.metal_dir(),
            folder=self.workspace.build(self.built.stamp.base, "metal-emulator"),
            tools=toolchain.tools(),
            jobs=cmake_plan.jobs(toolchain.host()),
            environment=builder.environment(self.workspace),
        )

    def _tell(self, why: str) -> None:
        self.reporter.tell(f"  compiling the Metal emulator, a few minutes, because {why}")

    def _same_source(self) -> None:
        """Raise CheckoutError if the checkout is no longer what was built."""
        repository = Repository(Path(self.built.stamp.checkout))
        if repository.tree("HEAD") != self.built.stamp.tree or repository.changes():
            raise CheckoutError(
                "The checkout is no longer what was built from it.",
                where=self.built.stamp.checkout,
                remedy="Run `tqforge build`.",
            )
