"""Where Metal kernels can run: on this machine's own Metal, or on the Metal host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tqforge.adapters import toolchain
from tqforge.adapters.llama.child import extra_libraries
from tqforge.build import metal_emulator
from tqforge.verify.programs import BuildPrograms
from tqforge.verify.session import Session, SkippedError

NAME = metal_emulator.DEVICE
_NO_BUILD = "the library was given by its path: neither its source nor its test programs are known"


@dataclass(frozen=True, kw_only=True)
class Device:
    """`folder` is the Metal host's; without one the library itself brings Metal."""

    title: str
    folder: Path | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_host(self) -> bool:
        return self.folder is not None

    def library(self, variant: str = "fast") -> Path | None:
        """The backend to load, where it is a file of its own."""
        return self.folder / f"libmetal-host-{variant}.so" if self.folder else None

    def environment(self, report: Path | None = None, variant: str = "fast") -> dict[str, str | None]:
        """For a program that loads backends by GGML_BACKEND_PATH; a run without a dispatch then fails."""
        if not self.folder:
            return {}
        return {
            "GGML_BACKEND_PATH": str(self.library(variant)),
            "METAL_HOST_EXPECT_DISPATCHES": "1",
            "METAL_HOST_QUIET": "1",
            extra_libraries.REPORT: str(report) if report else None,
        }


def programs(session: Session) -> BuildPrograms:
    """Raises SkippedError for a library given by its path."""
    if session.target.programs is None:
        raise SkippedError(_NO_BUILD, "Leave --library out to verify the build of `tqforge build`.")
    return session.target.programs


def why_none(session: Session, system: str) -> tuple[str, str]:
    """Why no Metal kernel can run here, and what would change that; two empty strings when one can."""
    if session.target.gpu:
        return "", ""
    if system == "Darwin":
        return "this build has no Metal", "Run `tqforge build --metal`, then `tqforge verify --metal`."
    if reason := metal_emulator.missing():
        return reason, metal_emulator.REMEDY
    return "", ""


def host_title(environment: Mapping[str, str]) -> str:
    """With the GPU family where the environment chooses another one than the host's default."""
    family = environment.get("METAL_HOST_FAMILY")
    return f"Metal host, GPU family {family}" if family else "Metal host"


def find(session: Session) -> Device:
    """The device of this machine; a Metal host is compiled if need be. Raises SkippedError with reason and remedy."""
    shop = programs(session)
    reason, remedy = why_none(session, toolchain.host().system)
    if reason:
        raise SkippedError(reason, remedy)
    if session.target.gpu:
        return Device(title="Metal")
    return Device(title=host_title(os.environ), folder=shop.host(metal_emulator.verification(session.facts.head_k)))
