"""The rows of `report.json`. Sizes are bytes, times seconds, KL divergences nats per token."""

from __future__ import annotations

from typing import Literal

from tqforge.report.schema.base import Interval, Outcome, Real, Record


class MemoryRow(Record):
    """K and V tensors of one context: as the library allocated them beside what the block sizes give.

    `buffers` is the size of the backend buffers that hold them, padding included; types are those of the tensors.
    """

    pair: str
    n_ctx: int
    k_measured: int
    v_measured: int
    k_formula: int
    v_formula: int
    k_values: int
    v_values: int
    buffers: int = 0
    k_type: str = ""
    v_type: str = ""
    device: str = ""
    peak_rss: int | None = None


class NearMiss(Record):
    """A word of the answer that is almost the key: `distance` edits away."""

    expected: str
    seen: str
    distance: int


class NeedleCell(Record):
    """One question put to one pair. `control` names the untreated runs a cell is judged against."""

    pair: str
    control: Literal["none", "f16", "no-needle"]
    facts: tuple[str, ...]
    fact_kind: str
    length: int
    tokens: int
    depth: float
    seed: int
    position: int = 0
    outcome: Outcome
    score: float | None
    exact: bool | None
    found: tuple[str, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    answer: str = ""
    prompt_sha256: str = ""
    seconds: float | None = None
    error: str = ""


class NeedleSummary(Record):
    """All judged cells of one pair at one length (`length` None: all lengths).

    `outcome`: `kept` all that f16 found, `losses` (some), `lost` (all), `not judged` (f16 found none), `errors`.
    """

    pair: str
    length: int | None
    n: int
    hits: int
    partial: int
    misses: int
    inconclusive: int
    errors: int
    mean_score: float | None
    rate: Interval | None
    outcome: Literal["kept", "losses", "lost", "not judged", "errors"] = "not judged"


class Greedy(Record):
    """Greedy continuations beside those of f16: how many tokens are equal before the first difference.

    `mean` is over the starts, `same` is the share of starts without any difference in `limit` tokens.
    """

    limit: int
    equal: tuple[int, ...]
    mean: Interval
    same: float


class QualityRow(Record):
    """One pair against f16 on the same tokens. `floor` rows are f16 against itself: the noise of the method.

    `rotation` names the sides llama.cpp rotated; `unrotated` rows had that switched off, to show what it is worth.
    `perplexity_ratio` is this perplexity over that of f16 on the same tokens.
    """

    pair: str
    bits: float
    prefix: int
    tokens: int
    kl: Interval
    kl_p99: Interval
    kl_max: Real
    top1: Interval
    perplexity: Real
    perplexity_reference: Real
    perplexity_ratio: Interval | None = None
    greedy: Greedy | None = None
    is_floor: bool = False
    rotation: str = ""
    unrotated: bool = False


class OpsRow(Record):
    """One run of upstream's test-backend-ops, or of the Metal emulator's own cases (with an NMSE, against float64).

    `dispatches` counts the kernels that the Metal emulator ran; None elsewhere.
    """

    backend: str
    op: str
    passed: int
    failed: int
    unsupported: int
    worst_nmse: float | None = None
    mean_nmse: float | None = None
    dispatches: int | None = None
    filter: str = ""
    seconds: float = 0.0
    note: str = ""


class DeviceRow(Record):
    """One pair with all layers on the device, beside the CPU alone on the same tokens.

    `kl_same` is KL(CPU || device) where the CPU reads the rows that the device wrote: up to `bar` it is good.
    `error_cpu` and `error_device` are squared error over squared value of what either wrote, mean over all cache
    tensors. `kl` is KL(CPU || device) where each reads its own cache, `kl_cpu` KL(CPU || CPU) with the same tokens one
    by one: a quantizer makes much of the least difference, so that neither is judged. The two `kl_f16` are
    KL(f16 || pair) on one backend. The greedy texts part at token `parted`: the CPU's choice leads the device's by
    `gap_cpu` logits on the CPU, there it trails by `gap_device`. `attention` and `writes` count the Metal emulator's
    dispatches of such kernels; None elsewhere.
    """

    pair: str
    tokens: int
    kl: Interval
    kl_max: Real
    top1: Real
    kl_cpu: Interval | None = None
    kl_same: Interval | None = None
    bar: Real | None = None
    error_cpu: Real | None = None
    error_device: Real | None = None
    kl_f16_device: Interval | None = None
    kl_f16_cpu: Interval | None = None
    parted: int | None = None
    gap_cpu: Real | None = None
    gap_device: Real | None = None
    text: str = ""
    splits: int = 0
    strays: tuple[str, ...] = ()
    dispatches: int | None = None
    attention: int | None = None
    writes: int | None = None
    seconds: float = 0.0
    note: str = ""


class SpeedRow(Record):
    """Rates of one pair at one depth, medians over interleaved rounds, with the ratio to f16 in the same run."""

    pair: str
    depth: int
    phase: Literal["prefill", "decode", "end-to-end"]
    rate: Interval
    ratio_f16: Interval | None
    rounds: int
    note: str = ""
    depth_share: float | None = None  # of the time per token: what depth 0 does not have, attention above all
    neighbour: str = ""  # the stock pair that this one is first compared with
    ratio_neighbour: Interval | None = None


class SpeedRatio(Record):
    """A pair's rate over another's in the same rounds; `bar` is what was aimed at, where there is an aim."""

    pair: str
    against: str
    phase: Literal["prefill", "decode", "end-to-end"]
    depth: int
    ratio: Interval
    rounds: int
    bar: float | None = None


class Need(Record):
    """Bytes of one context by what they are for; layers with a sliding window apart."""

    weights: int
    kv: int
    kv_swa: int = 0
    compute: int

    @property
    def total(self) -> int:
        return self.weights + self.kv + self.kv_swa + self.compute


class PlanRow(Record):
    """What one context needs: as planned from file and block sizes, and as llama.cpp allocated it in this run."""

    pair: str
    n_ctx: int
    planned: Need
    measured: Need | None = None


class Recommendation(Record):
    """The pair for a memory budget; `usable` is what the machine grants of it (on macOS the GPU's working set).

    `need` is measured where `measured` says so, else planned.
    """

    budget: int
    usable: int
    n_ctx: int
    pair: str | None
    need: int | None
    measured: bool = False
    reason: str = ""


class PairVerdict(Record):
    """Whether a pair can be used with this model, and the figures that decided; on how many needles it rests."""

    pair: str
    bits: float
    level: Literal["safe", "undecided", "costs quality", "unsafe"]
    why: str
    needles: int = 0
    unrotated: bool = False
