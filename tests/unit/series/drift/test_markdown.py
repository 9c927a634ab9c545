"""The drift report as a page and as JSON."""

from __future__ import annotations

import json

import pytest

from tqforge.base.pins import load_base
from tqforge.base.snapshots import Snapshot
from tqforge.series.drift.markdown import Drift, document, markdown, sentence
from tqforge.series.drift.outcomes import BREAKING, DriftOutcome, DriftResult

OLD = Snapshot("0.1", "1" * 40, "a" * 40, "f" * 64)
NEW = Snapshot("0.2", "2" * 40, "b" * 40, "e" * 64)


def result(patch: str, outcome: DriftOutcome, **options: object) -> DriftResult:
    return DriftResult(patch=patch, outcome=outcome, **options)  # type: ignore[arg-type]


CLEAN = [result("one", DriftOutcome.CLEAN), result("two", DriftOutcome.MOVED, detail="by +3 lines")]
BROKEN = [
    result("one", DriftOutcome.CONFLICT, file="x.c", hunk=1, hunks=2, detail="line 7"),
    result("two", DriftOutcome.TARGET_DELETED, file="y.c", needs=("one",)),
]
DRIFT = Drift(load_base("upstream"), "9" * 64, (OLD, NEW), {"0.1": CLEAN, "0.2": BROKEN})

PAGE = f"""# Drift of the series for base upstream

Base: {DRIFT.base.title}, tree {DRIFT.base.tree}. Series: 999999999999.

| patch | 0.1 | 0.2 | first breaking |
| --- | --- | --- | --- |
| `one` | clean | **conflict** | 0.2 |
| `two` | moved | **target deleted** | 0.2 |

## 0.1

Tree {"a" * 40}, from {"f" * 64}.

* `one`: clean
* `two`: moved (by +3 lines)

## 0.2

Tree {"b" * 40}, from {"e" * 64}.

* `one`: conflict in x.c, hunk 1 of 2 (line 7)
* `two`: target deleted in y.c; depends on one, which failed
"""


def test_the_page() -> None:
    assert markdown(DRIFT) == PAGE


def test_the_document_is_json_with_an_answer_for_every_patch() -> None:
    found = json.loads(json.dumps(document(DRIFT)))
    assert found["schema"] == "tqforge.drift/1"
    assert found["base"]["tree"] == DRIFT.base.tree
    assert [item["label"] for item in found["snapshots"]] == ["0.1", "0.2"]
    assert found["snapshots"][1]["results"][1]["needs"] == ["one"]
    assert [item["breaking"] for item in found["snapshots"][0]["results"]] == [False, False]
    assert [item["breaking"] for item in found["snapshots"][1]["results"]] == [True, True]
    assert found["first_breaking"] == {"one": "0.2", "two": "0.2"}


def test_the_first_breaking_snapshot_in_the_given_order() -> None:
    turned = Drift(DRIFT.base, DRIFT.series_sha256, (NEW, OLD), DRIFT.results)
    assert turned.first_breaking("one") == "0.2"
    calm = Drift(DRIFT.base, DRIFT.series_sha256, (OLD,), {"0.1": CLEAN})
    assert (calm.first_breaking("one"), calm.breaking) == ("", 0)
    assert document(calm)["first_breaking"] == {"one": None, "two": None}
    assert "| `one` | clean | - |" in markdown(calm)
    assert DRIFT.breaking == 2


def test_a_drift_without_snapshots_has_no_patches() -> None:
    assert Drift(DRIFT.base, "9" * 64, (), {}).patches == []


@pytest.mark.parametrize("outcome", DriftOutcome)
def test_breaking_outcomes_are_bold_and_counted(outcome: DriftOutcome) -> None:
    drift = Drift(DRIFT.base, "9" * 64, (OLD,), {"0.1": [result("one", outcome)]})
    assert drift.breaking == (outcome in BREAKING)
    assert (f"**{outcome}**" in markdown(drift)) is (outcome in BREAKING)


def test_sentences() -> None:
    assert sentence(result("x", DriftOutcome.BROKEN, detail="why")) == "broken (why)"
    several = result("x", DriftOutcome.CONFLICT, file="a.c", needs=("p", "q"))
    assert sentence(several) == "conflict in a.c; depends on p, q, which failed"
    assert result("x", DriftOutcome.CONFLICT, file="a.c").place() == "a.c"
