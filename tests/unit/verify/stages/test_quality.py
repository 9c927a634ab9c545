"""Where a text is scored and continued, and what is made of the figures. No library: a model made of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tqforge.adapters.llama.api.cache import Scored
from tqforge.adapters.llama.child.passage import Passage, Reader, equal_tokens
from tqforge.core.pair import Pair
from tqforge.errors import UsageError
from tqforge.report.schema.base import Interval
from tqforge.report.schema.rows import QualityRow
from tqforge.verify import corpus, settings, stats
from tqforge.verify.stages.quality import stage as quality
from tqforge.verify.stages.quality import windows


def row(kl: float, top: float = 0.5, **more: Any) -> QualityRow:
    band, share = Interval(value=kl, low=kl, high=kl), Interval(value=top, low=top, high=top)
    return QualityRow(
        pair=Pair.parse("q/q"), bits=4, prefix=1, tokens=1, kl=band, kl_p99=band, kl_max=kl, perplexity=1, top1=share,
        perplexity_reference=1, **more,
    )  # fmt: skip


class Table:
    """An engine whose logits are the previous token's row of a table; it keeps what a context keeps."""

    batch_size = 3

    def __init__(self, table: np.ndarray) -> None:
        self.table, self.n_vocab = table, len(table)
        self.held: list[int] = []
        self.kept: list[int] = []

    def decode(self, tokens: list[int], *, scored: int = 0) -> None:
        self.held += tokens
        self.kept = tokens[len(tokens) - scored :]

    def finite_logits(self, place: int = -1) -> np.ndarray:
        row: np.ndarray = self.table[self.kept[place]]
        return row

    def generate(self, limit: int, *, stop_unlike: list[int] | None = None) -> tuple[list[int], bool]:
        made: list[int] = []
        while len(made) < limit:
            made.append(int(self.finite_logits().argmax()))
            if stop_unlike is not None and made != stop_unlike[: len(made)]:
                break
            self.decode([made[-1]], scored=1)
        return made, False

    def keep(self, count: int) -> None:
        del self.held[count:]


RNG = np.random.default_rng(1)
TABLE = RNG.normal(size=(7, 7)).astype(np.float32)
TOKENS = [int(token) for token in RNG.integers(0, 7, 40)]
PASSAGE = Passage(tokens=TOKENS, windows=[(8, 5), (30, 10)], starts=[4, 20], limit=4)


def read(table: np.ndarray, tmp_path: Any, reference: bool) -> Any:
    engine: Any = Table(table)
    path = tmp_path / "ref.npy"
    if not reference:
        return Reader(engine, PASSAGE).read(None, path, None)
    first = read(TABLE, tmp_path, False)
    return Reader(engine, PASSAGE).read(path, None, first.made)


def test_every_scored_token_is_foretold_by_the_one_before_it(tmp_path: Any) -> None:
    found = read(TABLE, tmp_path, False)
    places = [*range(8, 13), *range(30, 40)]
    wide = TABLE.astype(np.float64)
    logs = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    assert [score.nll for score in found.scores] == pytest.approx([-logs[TOKENS[p - 1], TOKENS[p]] for p in places])
    assert [len(made) for made in found.made] == [4, 4]


def test_a_run_beside_itself_differs_in_nothing(tmp_path: Any) -> None:
    found = read(TABLE, tmp_path, True)
    assert max(score.kl for score in found.scores) == pytest.approx(0, abs=1e-12)
    assert found.equal == [4, 4]


def test_another_model_is_told_apart_and_its_continuation_ends_at_the_difference(tmp_path: Any) -> None:
    found = read(np.roll(TABLE, 1, axis=0), tmp_path, True)
    assert min(score.kl for score in found.scores) > 0
    assert all(equal < 4 and len(made) == equal + 1 for equal, made in zip(found.equal, found.made, strict=True))


@pytest.mark.parametrize(
    ("made", "ended", "wanted", "equal"),
    [
        ([1, 2, 3], False, [1, 2, 3], 3),
        ([1, 9], False, [1, 2, 3], 1),
        ([1], True, [1, 2, 3], 1),  # it stops where f16 goes on
        ([1, 2], True, [1, 2], 3),  # both stop at the same place: no difference in the whole limit
        ([1, 2, 5], False, [1, 2], 2),  # it goes on where f16 stops
        ([], True, [], 3),
        ([4], False, [], 0),
    ],
)
def test_equal_tokens(made: list[int], ended: bool, wanted: list[int], equal: int) -> None:
    assert equal_tokens(made, ended, wanted, 3) == equal


def test_places_of_a_text_keep_out_of_each_others_way() -> None:
    scored = windows.windows((512, 1536, 4096), 256)
    found = windows.starts(scored, 12)
    assert len(found) == 12
    assert found == tuple(sorted(found))
    for place in found:
        assert all(place <= first - 1 or place >= first + count for first, count in scored)
    assert windows.starts((), 4) == windows.starts(scored, 0) == ()
    with pytest.raises(ValueError, match="reach into"):
        windows.windows((512, 600), 256)
    with pytest.raises(UsageError):
        settings.parse_prefixes("512,600")
    assert settings.parse_prefixes("512,4k") == (512, 4096)


def test_rows_have_an_interval_for_everything() -> None:
    count = 64
    kl = np.abs(np.random.default_rng(0).normal(0.02, 0.01, count))
    base = Scored(nll=(2.0,) * count, kl=(None,) * count, same_top=(None,) * count, made=(), equal=(), rotation={})
    reply = Scored(
        kl=tuple(kl.tolist()), nll=(2.1,) * count, same_top=(True,) * 60 + (False,) * 4, made=(), equal=(3, 8, 8),
        rotation={"k": True, "v": False},
    )  # fmt: skip
    first, second = quality.rows_of(Pair("q8_0", "tq3_0"), 6.0, ((8, 32), (64, 32)), reply, base, limit=8)
    assert (first.prefix, second.prefix, first.tokens) == (8, 64, 32)
    assert first.top1.value == 1.0
    assert second.top1.value == 28 / 32
    assert first.kl.low < first.kl.value < first.kl.high < first.kl_p99.high
    assert first.perplexity_ratio is not None
    assert first.perplexity_ratio.value == pytest.approx(np.exp(0.1))
    assert first.greedy is not None
    assert (first.greedy.mean.value, first.greedy.same, first.greedy.equal) == (19 / 3, 2 / 3, (3, 8, 8))
    assert first.greedy.mean.low < 19 / 3 < first.greedy.mean.high
    assert first.rotation == "K"
    assert quality.greedy([], 8) is None


def test_the_rotation_that_llama_cpp_logs() -> None:
    assert quality.rotation({"k": True, "v": False}) == "K"
    assert (quality.rotation({"k": False}), quality.rotation({})) == ("none", "not stated")


def test_statistics_of_a_bootstrap() -> None:
    values = np.arange(100, dtype=np.float64) / 100
    assert stats.block_bootstrap(values, statistic=stats.percentile99).value == pytest.approx(0.9801)
    assert stats.block_bootstrap(values * 0, statistic=stats.growth).value == 1.0
    same = stats.block_bootstrap(np.full(9, 4.0), block=1)
    assert (same.low, same.value, same.high) == (4.0, 4.0, 4.0)


def test_the_text_is_long_enough_for_the_longest_prefix() -> None:
    text = corpus.quality()
    assert "quality.txt" in text.name
    assert "hay.txt" in text.name
    assert len(text.content.split()) > max(settings.FULL.quality_prefixes)
