"""Claims that the codec lab cannot decide, and what does."""

from __future__ import annotations

from collections.abc import Sequence

from tqforge.lab.claims.claim import Claim, Evidence, Judge, Verdict, undecided


def _decided_by(command: str) -> Judge:
    def judge(_: Sequence[Evidence]) -> Verdict:
        return undecided(f"the lab stores f16; decided by `{command}`")

    return judge


CLAIMS = (
    Claim(
        name="memory",
        statement="tq3_0 takes 4.57 times less memory than f16.",
        published="4.57 times, by formula",
        theory="16 / 3.5",
        judge=_decided_by("tqforge verify --stage memory"),
    ),
    Claim(
        name="speed",
        statement="Prefill is 20 to 33 times and decoding 34 to 47 times slower than with q8_0 on an M1 Pro.",
        published="20x to 33x, 34x to 47x",
        theory="none in the format: the kernels undid the rotation for each four values",
        judge=_decided_by("tqforge verify --stage speed on a Mac"),
    ),
)
