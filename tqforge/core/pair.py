"""The K/V pair of cache types: one value from the command line to the report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from tqforge.core.cache_types import TQ3_0

_NAME = r"[A-Za-z0-9_]{1,24}"


@dataclass(frozen=True, order=True)
class Pair:
    """A K type and a V type by ggml name, written `q8_0/tq3_0`. A string in JSON and in Pydantic models."""

    k: str
    v: str

    @classmethod
    def parse(cls, text: str) -> Pair:
        """Parse `q8_0/tq3_0`, or `q8_0` for both sides. Raises ValueError with the reason."""
        parts = [part.strip() for part in text.split("/")]
        if len(parts) > 2 or not all(re.fullmatch(_NAME, part) for part in parts):
            raise ValueError(f"'{text}' is not a K/V pair like q8_0/tq3_0")
        return cls(parts[0], parts[-1])

    @classmethod
    def both(cls, name: str) -> Pair:
        """Use one type for K and V."""
        return cls(name, name)

    @property
    def is_mixed(self) -> bool:
        """Whether K and V have different types."""
        return self.k != self.v

    @property
    def has_tq3_0(self) -> bool:
        """Whether K or V is the type that the series adds."""
        return TQ3_0 in (self.k, self.v)

    def __str__(self) -> str:
        return f"{self.k}/{self.v}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        parsed = core_schema.no_info_after_validator_function(
            cls.parse, core_schema.str_schema(pattern=f"^{_NAME}(/{_NAME})?$")
        )
        return core_schema.json_or_python_schema(
            json_schema=parsed,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), parsed]),
            serialization=core_schema.to_string_ser_schema(),
        )


#: The reference that every pair is compared with.
F16 = Pair.both("f16")
Q8_0 = Pair.both("q8_0")
Q4_0 = Pair.both("q4_0")
TQ3_0_PAIR = Pair.both(TQ3_0)
Q8_0_TQ3_0 = Pair("q8_0", TQ3_0)
