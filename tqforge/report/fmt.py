"""Format numbers, sizes and durations for people, and make untrusted text safe to show."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime

from tqforge.report.schema.base import Interval, StageStatus

NONE = "\N{EN DASH}"

#: A sign per status, so that colour is never the only carrier.
STATUS_SIGN = {
    StageStatus.PASSED: "\N{CHECK MARK}",
    StageStatus.FAILED: "\N{BALLOT X}",
    StageStatus.INCONCLUSIVE: "?",
    StageStatus.SKIPPED: "\N{HORIZONTAL ELLIPSIS}",
    StageStatus.ERROR: "!",
}
STATUS_WORD = {
    StageStatus.PASSED: "passed",
    StageStatus.FAILED: "failed",
    StageStatus.INCONCLUSIVE: "inconclusive",
    StageStatus.SKIPPED: "skipped",
    StageStatus.ERROR: "error",
}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def stage_title(name: str) -> str:
    """Return the name of a stage as a heading."""
    return line(name)[:1].upper() + line(name)[1:]


def known(value: float | None) -> bool:
    """Return whether the value is a finite number."""
    return value is not None and math.isfinite(value)


def count(number: int) -> str:
    """`12,345`."""
    return f"{number:,}"


def plural(number: int, word: str, many: str = "") -> str:
    """`1 cell`, `2 cells`."""
    return f"{count(number)} {word if number == 1 else many or word + 's'}"


def percent(share: float | None, digits: int = 0) -> str:
    """`89%`. Never rounded to 0 or 100 unless it is exactly that."""
    if share is None or not math.isfinite(share):
        return NONE
    text = f"{100 * share:.{digits}f}"
    while digits < 3 and ((float(text) >= 100 and share < 1) or (float(text) <= 0 and share > 0)):
        digits += 1
        text = f"{100 * share:.{digits}f}"
    return f"{text}%"


def percent_range(interval: Interval | None) -> str:
    """`72 to 96%`."""
    if interval is None or not (known(interval.low) and known(interval.high)):
        return NONE
    return f"{100 * interval.low:.0f} to {100 * interval.high:.0f}%"


def size(number: float | None) -> str:
    """`12.3 MiB`."""
    if number is None or not math.isfinite(number):
        return NONE
    value = float(number)
    for unit in _UNITS:
        if abs(value) < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{value:,.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:,.1f} {unit}"


def memory(number: int) -> str:
    """`16 GiB`, `1.15 GiB`, `323 MiB`: three digits, so that similar budgets differ."""
    value, unit = float(number), _UNITS[0]
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.2f}".rstrip("0").rstrip(".") + f" {unit}"


def figure(value: float | None, digits: int = 3) -> str:
    """Significant digits without an exponent: `0.0044`, `0.280`, `12.3`, `1,556`."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    if abs(value) < 1e-6:
        return f"{'-' if value < 0 else ''}<0.000001"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 7)}f}"


def scientific(value: float | None) -> str:
    """`2.4e-07`: for errors, which differ by orders of magnitude."""
    return NONE if value is None or not math.isfinite(value) else f"{value:.1e}"


def kl(value: float | None) -> str:
    """A KL divergence: two significant digits below 0.1, three above. Noise can make it negative."""
    return figure(value, 2 if value is not None and math.isfinite(value) and abs(value) < 0.1 else 3)


def kl_range(interval: Interval | None) -> str:
    if interval is None or not (known(interval.low) and known(interval.high)):
        return NONE
    return f"{kl(interval.low)} to {kl(interval.high)}"


def ratio(interval: Interval | None) -> str:
    """`1.021 (1.003 to 1.040)`."""
    if interval is None or not all(map(known, (interval.value, interval.low, interval.high))):
        return NONE
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def times(ratio: float | None, digits: int = 1) -> str:
    """`5.8 times`, `12 times`."""
    if ratio is None or not math.isfinite(ratio):
        return NONE
    return f"{ratio:.{digits}f} times" if ratio < 10 else f"{ratio:,.0f} times"


def bits(value: float | None) -> str:
    """`3.5`, `4.25`."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:.3f}".rstrip("0").rstrip(".")


def duration(seconds: float | None) -> str:
    """`0.4 s`, `41 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return NONE
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def time(stamp: str) -> str:
    """`2026-12-01 02:23 UTC` for an ISO 8601 time stamp; any other text unchanged."""
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment.tzinfo else stamp


def sentence(text: str) -> str:
    """Capitalize the first letter, unless the text begins with a name such as `tq3_0/q8_0`."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.strip(",.:;").isalpha() else text


def listing(items: Iterable[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    words = list(items)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def ending(text: str) -> str:
    """End the text with a full stop, unless it ends with punctuation."""
    text = text.strip()
    return text if not text or text[-1] in ".!?:" else f"{text}."


def visible(text: str) -> str:
    """Replace control codes, bidirectional overrides and other invisible characters by their code points."""
    return "".join(map(_visible, text.replace("\r\n", "\n")))


def _visible(char: str) -> str:
    point = ord(char)
    if char in "\n\t" or (0x20 <= point < 0x7F):
        return char
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"<U+{point:04X}>"
    return char


def line(text: str, limit: int = 0) -> str:
    """Like `visible`, on one line, and at most `limit` characters long if a limit is given."""
    flat = " ".join(visible(text).split())
    return flat if not limit or len(flat) <= limit else f"{flat[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"
