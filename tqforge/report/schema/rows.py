"""The rows of `report.json`. Sizes are bytes, times seconds, KL divergences nats per token."""

from __future__ import annotations

from typing import Literal

from tqforge.core.pair import Pair
from tqforge.report.schema.base import CellOutcome, Choice, Interval, NeedleResult, PairLevel, Phase, Real, Record


class MemoryRow(Record):
    """K and V tensors of one context, as allocated and by formula; `buffers` is their backend memory with padding."""

    pair: Pair
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
    """A word of the answer that is `distance` edits from the expected one."""

    expected: str
    seen: str
    distance: int


class NeedleCell(Record):
    """One question to one pair. `control` names the control runs that a cell is judged against."""

    pair: Pair
    control: Literal["none", "f16", "no-needle"]
    facts: tuple[str, ...]
    fact_kind: str
    length: int
    tokens: int
    depth: float
    seed: int
    position: int = 0
    outcome: CellOutcome
    score: float | None
    exact: bool | None
    found: tuple[str, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    answer: str = ""
    prompt_sha256: str = ""
    seconds: float | None = None
    error: str = ""


class NeedleSummary(Record):
    """All judged cells of one pair at one length (`length` None: all lengths)."""

    pair: Pair
    length: int | None
    n: int
    hits: int
    partial: int
    misses: int
    inconclusive: int
    errors: int
    mean_score: float | None
    rate: Interval | None
    outcome: NeedleResult = NeedleResult.NOT_JUDGED


class Greedy(Record):
    """Tokens that equal those of f16 before the first difference, per start; `same` is the share without one."""

    limit: int
    equal: tuple[int, ...]
    mean: Interval
    same: float


class QualityRow(Record):
    """One pair against f16 on the same tokens. `is_floor`: f16 against itself, the noise of the method.

    `rotation` names the sides that llama.cpp rotated; it was switched off for `unrotated` rows.
    """

    pair: Pair
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
    """A run of test-backend-ops, or of the emulator's cases against float64; `dispatches` counts its kernels."""

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


class WriteError(Record):
    """Squared error over squared value of the K or V rows that CPU and device wrote, mean over the layers."""

    side: Literal["k", "v"]
    cpu: Real
    device: Real


class DeviceRow(Record):
    """One pair with all layers on the device, beside the CPU alone on the same tokens.

    `kl_same` is KL(CPU || device) where the CPU reads the rows that the device wrote; it may be `limit` at most.
    `error_cpu` and `error_device` are squared errors of the written rows, mean over all cache tensors. `kl` (each reads
    its own cache) and `kl_cpu` (CPU against itself, tokens one by one) grow with any small difference and are not
    judged. The two `kl_f16` are KL(f16 || pair) on one backend. From token `parted` on the greedy texts differ: the
    CPU's choice leads by `gap_cpu` logits on the CPU and trails by `gap_device` on the device. `strays` and
    `cpu_strays` are ops on another backend than intended. `attention` and `writes` count dispatches of the emulator.
    """

    pair: Pair
    tokens: int
    kl: Interval
    kl_max: Real
    top1: Real
    kl_cpu: Interval | None = None
    kl_same: Interval | None = None
    limit: Real | None = None
    write_errors: tuple[WriteError, ...] = ()
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
    cpu_strays: tuple[str, ...] = ()
    dispatches: int | None = None
    attention: int | None = None
    writes: int | None = None
    seconds: float = 0.0
    note: str = ""


class SpeedRow(Record):
    """Rates of one pair at one depth: medians over interleaved rounds, with the ratio to f16 in the same run."""

    pair: Pair
    depth: int
    phase: Phase
    rate: Interval
    ratio_f16: Interval | None
    rounds: int
    depth_share: float | None = None  # part of the time per token that depth 0 does not have
    neighbour: Pair | None = None  # the stock pair that this one is first compared with
    ratio_neighbour: Interval | None = None


class SpeedRatio(Record):
    """A pair's rate over another's in the same rounds; `build` names the other's build, `target` the least ratio."""

    pair: Pair
    against: Pair
    build: str = ""
    phase: Phase
    depth: int
    ratio: Interval
    rounds: int
    target: float | None = None


class MemoryNeed(Record):
    """Bytes of one context by use; layers with a sliding window are counted in `kv_swa`."""

    weights: int
    kv: int
    kv_swa: int = 0
    compute: int

    @property
    def total(self) -> int:
        return self.weights + self.kv + self.kv_swa + self.compute


class PlanRow(Record):
    """The memory of one context: planned from file and block sizes, and as llama.cpp allocated it."""

    pair: Pair
    n_ctx: int
    planned: MemoryNeed
    measured: MemoryNeed | None = None


class PairVerdict(Record):
    """Whether a pair suits this model, its worst KL divergence, and the needles it found of those that f16 found."""

    pair: Pair
    bits: float
    level: PairLevel
    kl: Interval
    hits: int = 0
    needles: int = 0
    unrotated: bool = False


class Recommendation(Record):
    """The pair for a memory budget, `usable` of which the machine grants. `need` is measured or else planned.

    `closer` pairs are closer to f16 but need `closer_need` or more; `unsafe` ones would fit, or are smaller.
    """

    budget: int
    usable: int
    n_ctx: int
    outcome: Choice
    pair: Pair | None = None
    need: int | None = None
    measured: bool = False
    verdict: PairVerdict | None = None
    closer: tuple[Pair, ...] = ()
    closer_need: int | None = None
    smallest: Pair | None = None
    smallest_need: int | None = None
    unsafe: tuple[PairVerdict, ...] = ()
