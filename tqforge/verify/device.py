"""Choose where Metal kernels run: on this machine's GPU or on the Metal emulator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tqforge.adapters import toolchain
from tqforge.build import metal_emulator
from tqforge.core import emulator
from tqforge.verify.programs import BuildPrograms
from tqforge.verify.session import Session, SkippedError

NAME = emulator.DEVICE
_NO_BUILD = "the library was given by its path: neither its source nor its test programs are known"


@dataclass(frozen=True, kw_only=True)
class Device:
    """A Metal device. `folder` holds the emulator; without one, the library under test has Metal built in."""

    title: str
    folder: Path | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_emulator(self) -> bool:
        return self.folder is not None

    def library(self, variant: str = "fast") -> Path | None:
        """Return the backend to load, or None if it is linked into the library."""
        return emulator.library(self.folder, variant) if self.folder else None

    def environment(self, report: Path | None = None, variant: str = "fast") -> dict[str, str | None]:
        """Return the environment for a program that loads backends by GGML_BACKEND_PATH."""
        return emulator.environment(self.folder, variant, report) if self.folder else {}


def programs(session: Session) -> BuildPrograms:
    """Return the programs of the build under test. Raises SkippedError for a library given by its path."""
    if session.target.programs is None:
        raise SkippedError(_NO_BUILD, "Leave --library out to verify the build of `tqforge build`.")
    return session.target.programs


def why_none(session: Session, system: str) -> tuple[str, str]:
    """Return why no Metal kernel can run here and the remedy, or two empty strings."""
    if session.target.gpu:
        return "", ""
    if system == "Darwin":
        return "this build has no Metal", "Run `tqforge build --metal`, then `tqforge verify --metal`."
    if reason := metal_emulator.missing():
        return reason, metal_emulator.REMEDY
    return "", ""


def emulator_title(environment: Mapping[str, str]) -> str:
    """Return the name of the emulator for reports, with the GPU family if the environment sets one."""
    family = environment.get(emulator.FAMILY)
    return f"{emulator.TITLE}, GPU family {family}" if family else emulator.TITLE


def find(session: Session) -> Device:
    """Return this machine's device, building the emulator if needed. Raises SkippedError if there is none."""
    shop = programs(session)
    reason, remedy = why_none(session, toolchain.host().system)
    if reason:
        raise SkippedError(reason, remedy)
    if session.target.gpu:
        return Device(title="Metal")
    return Device(
        title=emulator_title(os.environ), folder=shop.emulator(metal_emulator.verification(session.facts.head_k))
    )
