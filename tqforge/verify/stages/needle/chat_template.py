"""Split the model's chat template at the user message."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jinja2
import jinja2.sandbox

from tqforge.adapters.gguf_io import ModelFacts
from tqforge.errors import ModelError

_MARK = "@@tqforge-message@@"
#: Templates that print a date print this one: a prompt must not depend on the day.
_DATE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Template:
    """The text before and after the user message."""

    head: str
    tail: str
    sha256: str


def split(facts: ModelFacts) -> Template:
    """Split the template. Raises ModelError if there is none, or if it does not render."""
    if not facts.chat_template:
        raise ModelError(
            "The model has no chat template.", where=str(facts.path), remedy="Choose an instruct model with --model."
        )
    text = render(facts.chat_template, _MARK, facts.bos, facts.eos)
    head, mark, tail = text.partition(_MARK)
    if not mark or _MARK in tail:
        raise ModelError("The chat template does not show the user's message once.", where=str(facts.path))
    return Template(head, tail, hashlib.sha256(facts.chat_template.encode()).hexdigest())


def render(template: str, message: str, bos: str, eos: str) -> str:
    """Render one user message, with thinking disabled where the template supports that."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refused
    environment.globals["strftime_now"] = _DATE.strftime
    try:
        return environment.from_string(template).render(
            messages=[{"role": "user", "content": message}],
            add_generation_prompt=True,
            bos_token=bos,
            eos_token=eos,
            enable_thinking=False,
        )
    except jinja2.TemplateError as error:
        raise ModelError(f"The chat template does not render: {error}") from error


def _refused(message: str) -> Any:
    raise jinja2.TemplateError(message)
