"""Rows without a prediction are left out on request, with all that belongs to them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from skcalib import calibration_report, compare_models, confidence_interval
from skcalib.report import _sections

RNG = np.random.default_rng(0)
PROBA = RNG.random(60)
OTHER = np.clip(PROBA + 0.1 * RNG.normal(size=60), 0, 1)
Y, Z = (RNG.random(60) < PROBA).astype(int), (RNG.random(60) < OTHER).astype(int)
WEIGHT, GROUPS, SITE = RNG.random(60) + 0.5, np.arange(60) // 2, np.array(["a", "b"] * 30)
MISSING, KEEP = PROBA.copy(), np.arange(60) % 9 != 4
MISSING[~KEEP] = np.nan
KEEP_BOTH, MISSING_OTHER = KEEP & (np.arange(60) != 7), OTHER.copy()
MISSING_OTHER[7] = np.nan

OMIT = {"nan_policy": "omit", "random_state": 0}
PLAIN = {"random_state": 0}

FORMS = {
    "array": MISSING,
    "list": MISSING.tolist(),
    "None": [None if np.isnan(p) else p for p in MISSING.tolist()],
    "series": pd.Series(MISSING, index=np.arange(60)[::-1]),
    "nullable": pd.Series(MISSING).astype("Float64"),
    "two columns": np.column_stack([1 - MISSING, MISSING]),
}


def omitted(n):
    return pytest.warns(UserWarning, match=f"^{n} rows without a prediction were left out")


@pytest.mark.parametrize("form", FORMS)
def test_an_interval_is_that_of_the_complete_rows(form):
    rows = {"sample_weight": WEIGHT, "groups": GROUPS}
    with omitted(7):
        result = confidence_interval(log_loss, Y, FORMS[form], **rows, **OMIT)
    rows = {name: values[KEEP] for name, values in rows.items()}
    assert result == confidence_interval(log_loss, Y[KEEP], PROBA[KEEP], **rows, **PLAIN)


@pytest.mark.parametrize("by", [SITE, {"site": SITE}, pd.DataFrame({"site": SITE})], ids=type)
def test_subgroups_lose_the_same_rows(by):
    with omitted(7):
        result = confidence_interval(brier_score_loss, Y.tolist(), MISSING, by=by, **OMIT)
    site = {"site": SITE[KEEP]}
    expected = confidence_interval(brier_score_loss, Y[KEEP], PROBA[KEEP], by=site, **PLAIN)
    np.testing.assert_array_equal(result.low, expected.low)
    np.testing.assert_array_equal(result.n_samples, expected.n_samples)


@pytest.mark.parametrize("y_true", [Y, (Y, Z)], ids=["shared", "own"])
def test_a_pair_loses_rows_where_either_is_missing(y_true):
    models = MISSING, MISSING_OTHER
    with omitted(8):
        result = compare_models(brier_score_loss, y_true, *models, groups=GROUPS, **OMIT)
    kept = tuple(y[KEEP_BOTH] for y in y_true) if isinstance(y_true, tuple) else Y[KEEP_BOTH]
    models = PROBA[KEEP_BOTH], OTHER[KEEP_BOTH]
    assert result == compare_models(
        brier_score_loss, kept, *models, groups=GROUPS[KEEP_BOTH], **PLAIN
    )


def test_two_samples_lose_their_own_rows():
    groups = GROUPS, 100 + GROUPS[:50]
    with omitted(8):
        result = compare_models(
            brier_score_loss, (Y, Z[:50]), MISSING, MISSING_OTHER[:50], groups=groups, **OMIT
        )
    rest = np.arange(50) != 7
    expected = compare_models(
        brier_score_loss,
        (Y[KEEP], Z[:50][rest]),
        PROBA[KEEP],
        OTHER[:50][rest],
        groups=(groups[0][KEEP], groups[1][rest]),
        **PLAIN,
    )
    assert result == expected


@pytest.mark.parametrize("n", [53, 60])
def test_samples_that_are_no_pairs_stay_so(n):
    # as many rows are left of 60 as of 53; 60 and 60 are told apart by their weights
    weights = {} if n == 53 else {"sample_weight": (np.ones(60), np.ones(60))}
    with omitted(7):
        result = compare_models(brier_score_loss, (Y, Z[:n]), MISSING, OTHER[:n], **weights, **OMIT)
    weights = {"sample_weight": (np.ones(53), np.ones(n))}
    outcomes, models = (Y[KEEP], Z[:n]), (PROBA[KEEP], OTHER[:n])
    expected = compare_models(brier_score_loss, outcomes, *models, **weights, **PLAIN)
    assert vars(result) == pytest.approx(vars(expected), rel=1e-9)


@pytest.fixture
def short_reports(monkeypatch):
    monkeypatch.setitem(_sections.DRAWING, "n_resamples", 9)
    monkeypatch.setattr(_sections.Sections, "gain", lambda _: None)


def test_a_report_says_how_many(short_reports):
    rows = {"by": {"site": SITE}, "groups": GROUPS}
    with omitted(7):
        report = calibration_report(Y, MISSING, **rows, **OMIT)
    rows = {"by": {"site": SITE[KEEP]}, "groups": GROUPS[KEEP]}
    expected = calibration_report(Y[KEEP], PROBA[KEEP], **rows, **PLAIN)
    assert str(report) == str(expected)
    assert report.audit.pop("rows dropped") == "7 (with missing values)"
    assert report.to_dict() == expected.to_dict()


def test_a_report_of_two_models_has_the_rows_of_both(short_reports):
    outcomes, models = {"a": Y, "b": Z}, {"a": MISSING, "b": MISSING_OTHER}
    with omitted(8):
        report = calibration_report(outcomes, models, **OMIT)
    kept = {"a": Y[KEEP_BOTH], "b": Z[KEEP_BOTH]}
    expected = calibration_report(kept, {"a": PROBA[KEEP_BOTH], "b": OTHER[KEEP_BOTH]}, **PLAIN)
    assert str(report) == str(expected)
    assert {each.audit["rows dropped"] for each in report.reports.values()} == {
        "8 (with missing values)"
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [("y_true", np.append(Y, 1)), ("sample_weight", np.ones(61)), ("by", {"site": SITE[:59]})],
)
def test_other_lengths_are_not_hidden(name, value):
    arguments = {"y_true": Y, "y_pred": MISSING} | {name: value}
    with pytest.raises(ValueError, match=f"{name} and the predictions must have the same length"):
        confidence_interval(brier_score_loss, **arguments, **OMIT)


def test_nothing_is_left_out_unasked_or_in_silence(recwarn):
    for options in (PLAIN, PLAIN | {"nan_policy": "raise"}):
        with pytest.raises(ValueError, match="nan"):
            confidence_interval(brier_score_loss, Y, MISSING, **options)
    result = confidence_interval(brier_score_loss, Y, PROBA, **OMIT)
    assert result == confidence_interval(brier_score_loss, Y, PROBA, **PLAIN)
    assert not recwarn.list
    with pytest.raises(ValueError, match="'nan_policy' parameter"):
        confidence_interval(brier_score_loss, Y, MISSING, nan_policy="drop")
    with pytest.raises(ValueError, match="finite"):
        confidence_interval("quantile_calibration_error", Y, (MISSING, np.ones(60)), **OMIT)
