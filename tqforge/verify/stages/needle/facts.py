"""The facts to hide: a published one, and others drawn in the same form."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass

_FIRST = ("FROST", "EMBER", "COPPER", "WILLOW", "GRANITE", "SILVER", "HARBOR", "MEADOW", "CINDER", "MARBLE", "FALCON",
          "TIMBER", "ORCHID", "QUARTZ", "SADDLE", "THUNDER")  # fmt: skip
_SECOND = ("BLOCK", "FIELD", "WATCH", "BRIDGE", "POINT", "GATE", "STONE", "WHEEL", "CREST", "SHORE", "LANTERN", "ANVIL",
           "HOLLOW", "TOWER", "BASIN", "RIDGE")  # fmt: skip
_LETTERS = "".join(sorted(set(string.ascii_letters) - set("IOlo")))
_DIGITS = "23456789"

#: Before the text. Without it a small model does not look for the answer in a long text, whatever its cache.
TASK = "Read the text below. Somewhere in it is written what the secret project is called and what its access key is."
QUESTION = "What is the secret project called and what is its access key?"


@dataclass(frozen=True)
class Fact:
    """A name and a code that cannot be guessed, in one sentence."""

    name: str
    code: str
    kind: str

    @property
    def sentence(self) -> str:
        return f"The secret project is called {self.name} and its access key is {self.code}."

    @property
    def words(self) -> tuple[str, str]:
        return self.name, self.code


PUBLISHED = Fact("FROSTBLOCK-7", "VcMYB4", "published")


def fact(seed: int) -> Fact:
    """Return the published fact for seed 0, else one drawn from the seed."""
    if seed == 0:
        return PUBLISHED
    rng = random.Random(f"tqforge needle {seed}")  # noqa: S311 - drawn for a test, not for a lock
    name = f"{rng.choice(_FIRST)}{rng.choice(_SECOND)}-{rng.choice(_DIGITS)}"
    code = "".join(rng.choice(_LETTERS) for _ in range(5)) + rng.choice(_DIGITS)
    return Fact(name, code, "drawn")
