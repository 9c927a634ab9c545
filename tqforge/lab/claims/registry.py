"""All claims in the order in which they are shown."""

from __future__ import annotations

from tqforge.lab.claims import closed_form, distribution, elsewhere, quality, retrieval
from tqforge.lab.claims.claim import Claim
from tqforge.lab.request import Trial

CLAIMS: tuple[Claim, ...] = (
    *closed_form.CLAIMS,
    *distribution.CLAIMS,
    *quality.CLAIMS,
    *retrieval.CLAIMS,
    *elsewhere.CLAIMS,
)


def trials(claims: tuple[Claim, ...] = CLAIMS) -> tuple[Trial, ...]:
    """Return every scored trial that the claims need, each once."""
    return tuple(dict.fromkeys(Trial.parse(text) for claim in claims for text in claim.trials))


def needle_trials(claims: tuple[Claim, ...] = CLAIMS) -> tuple[Trial, ...]:
    """Return every trial whose answers the claims need, each once."""
    return tuple(dict.fromkeys(Trial.parse(text) for claim in claims for text in claim.needles))
