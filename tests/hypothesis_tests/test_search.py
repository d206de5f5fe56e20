"""The search for miscalibrated subgroups."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.polynomial import Legendre
from scipy.special import expit, logit
from scipy.stats import poisson

from skcalib._data import check_forecasts, check_predictions, with_groups
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    QuantileForecast,
)
from skcalib.hypothesis_tests import SubgroupCalibrationTest, find_miscalibrated_subgroups
from skcalib.hypothesis_tests._base import compute_null_values
from skcalib.hypothesis_tests._search_scores import (
    Candidate,
    CandidateScores,
    ClassSearch,
    ForecastSearch,
    legendre,
)
from skcalib.lenses import BinaryProblem, ClassGroups, Multilabel, Ordinal, _get_lens

OPTIONS = {"n_resamples": 99, "random_state": 0}


def problem(rng, n, change=lambda proba, X: proba):
    X = {"age": rng.uniform(18, 90, size=n), "site": rng.choice(["a", "b", "c"], size=n)}
    proba = rng.random(n)
    return rng.random(n) < change(proba, X), proba, X


def with_draws(search, n_resamples):
    """The values of the data and of draws, by signs where there are groups."""
    n, test = len(search.data.weight), SubgroupCalibrationTest(n_resamples=n_resamples)
    return compute_null_values(test, search, search.flip_signs(np.ones((1, n))), np.arange(n))[0]


def score_statistic(data, residual, rows):
    """Of an intercept and a slope of the rows' own, beyond common ones, by matrices."""
    weight, proba = data.weight, data.proba
    z = logit(proba)
    design = np.column_stack([np.ones_like(z), z, rows, rows * z])
    information = design.T * (weight * proba * (1 - proba)) @ design
    noise = design.T * (weight**2 * proba * (1 - proba)) @ design
    explained = information[2:, :2] @ np.linalg.inv(information[:2, :2])
    contrast = np.column_stack([-explained, np.eye(2)])
    score = contrast @ design.T @ residual
    variance = contrast @ noise @ contrast.T
    shrinkage = 1 + np.sum(weight**2) / len(weight) / variance[0, 0]
    return score @ np.linalg.solve(variance, score) / shrinkage


@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_equal_the_score_test_by_matrices(weighted):
    rng = np.random.default_rng(0)
    y, proba, X = problem(rng, 80)
    data = check_predictions(y, proba, sample_weight=rng.random(80) if weighted else None)
    candidates = [Candidate("x", "", X["age"] < 40), Candidate("x", "", X["site"] == "b")]
    scores = CandidateScores(data, candidates)
    residuals = data.weighted_residuals * rng.choice([-1.0, 1.0], size=(3, 80))
    expected = [
        [score_statistic(data, row, candidate.rows) for candidate in candidates]
        for row in residuals
    ]
    np.testing.assert_allclose(scores(residuals), expected, rtol=1e-9)


@pytest.mark.parametrize("container", [dict, pd.DataFrame, pl.DataFrame])
def test_a_range_and_a_category_are_found(container):
    def change(proba, X):
        return np.where(X["age"] > 75, proba**2, proba)

    y, proba, X = problem(np.random.default_rng(2), 1500, change)
    result = find_miscalibrated_subgroups(y, proba, container(X), **OPTIONS)
    assert result.p_value == result.p_values[0] == 0.01
    assert result.column[0] == "age"
    assert list(result.column_p_values) == ["age", "site"]
    assert result.column_p_values["site"] > 0.05
    limit = float(result.subgroup[0].removeprefix("> "))
    own = X["age"] > limit
    # the limit is written with four digits
    assert result.n_samples[0] == pytest.approx(own.sum(), abs=2)
    assert result.predicted[0] == pytest.approx(proba[own].mean(), abs=0.005)
    assert result.observed[0] == pytest.approx(y[own].mean(), abs=0.005)
    y = np.random.default_rng(1).random(1500) < np.where(X["site"] == "b", proba**2, proba)
    result = find_miscalibrated_subgroups(y, proba, container(X), **OPTIONS)
    assert (result.column[0], result.subgroup[0]) == ("site", "b")
    assert result.observed[0] == pytest.approx(y[X["site"] == "b"].mean())


def test_candidates_of_each_type_of_column():
    rng = np.random.default_rng(0)
    y, proba, _ = problem(rng, 200)
    x = rng.normal(size=200)
    x[:30] = np.nan
    X = pd.DataFrame(
        {
            "x": x,
            "few": rng.integers(3, size=200),
            "flag": rng.random(200) < 0.5,
            "rare": ["one"] * 5 + ["many"] * 195,
            "site": pd.Categorical(rng.choice(["lo", "hi"], size=200), ["lo", "hi"]),
        }
    )
    result = find_miscalibrated_subgroups(y, proba, X, n_bins=3, **OPTIONS)
    found = set(zip(result.column, result.subgroup, strict=True))
    low, high = np.quantile(x[30:], [1 / 3, 2 / 3], method="inverted_cdf")
    assert found == {
        ("x", "missing"),
        ("x", f"<= {low:.4g}"),
        ("x", f"{low:.4g} to {high:.4g}"),
        ("x", f"> {high:.4g}"),
        *(("few", str(k)) for k in range(3)),
        ("flag", "False"),
        ("flag", "True"),
        ("site", "lo"),
        ("site", "hi"),
    }


def women_and_men_above_70(rng, n):
    """Above 70, risks of women are too low and those of men too high; a third column is noise."""
    sex, is_old = rng.choice(["female", "male"], size=n), rng.random(n) < 0.3
    X = {"sex": sex, "old": np.where(is_old, "yes", "no"), "noise": rng.random(n)}
    proba = rng.beta(2, 3, size=n)
    error = is_old * np.where(sex == "female", 1.0, -1.0)
    return rng.random(n) < expit(logit(proba) + error), proba, X


def test_crossings_of_columns_are_found():
    y, proba, X = women_and_men_above_70(np.random.default_rng(1), 800)
    assert find_miscalibrated_subgroups(y, proba, X, **OPTIONS).p_value > 0.05
    result = find_miscalibrated_subgroups(y, proba, X, crossings=True, **OPTIONS)
    assert result.p_value == result.column_p_values["sex", "old"] == 0.01
    assert set(result.subgroup[:2]) == {"female, yes", "male, yes"}
    rows = (X["sex"] == result.subgroup[0].split(", ")[0]) & (X["old"] == "yes")
    assert result.n_samples[0] == rows.sum()
    assert result.predicted[0] == pytest.approx(proba[rows].mean())
    assert result.observed[0] == pytest.approx(y[rows].mean())
    words = repr(result).splitlines()[1].split()
    assert words[:4] == ["sex,", "old", *result.subgroup[0].split()]
    assert result.to_frame()["column"][0] == ("sex", "old")
    # p-values account for more candidates: those of single columns rise
    alone = find_miscalibrated_subgroups(y, proba, X, **OPTIONS).column_p_values
    assert all(result.column_p_values[name] >= p_value for name, p_value in alone.items())


def test_crossings_that_memory_cannot_hold_are_refused(monkeypatch):
    # 2 sexes × 2 ages, and each of them with 5 ranges: 24 crossings of 800 samples
    y, proba, X = women_and_men_above_70(np.random.default_rng(1), 800)
    monkeypatch.setattr("skcalib._inputs.warnings.machine_memory", lambda: 24 * 800.0)
    with pytest.raises(MemoryError, match=r"crossings=True needs .* Pass fewer columns"):
        find_miscalibrated_subgroups(y, proba, X, crossings=True, **OPTIONS)


@pytest.mark.parametrize("kind", ["classes", "forecasts"])
def test_crossings_are_those_of_a_column_of_pairs(kind):
    rng = np.random.default_rng(0)
    site, sex = rng.choice(list("abc"), size=300), rng.choice(["f", "m"], size=300)
    y, prediction = rng.random(300) < 0.4, 0.3 + 0.2 * rng.random(300)
    if kind == "forecasts":
        y, prediction = rng.normal(size=300), GaussianForecast(np.zeros(300), np.ones(300))
    X = {"site": site, "sex": sex, "copy": site}
    crossed = find_miscalibrated_subgroups(y, prediction, X, crossings=True, **OPTIONS).to_frame()
    X["pair"] = [f"{a}, {b}" for a, b in zip(site, sex, strict=True)]
    expected = find_miscalibrated_subgroups(y, prediction, X, **OPTIONS).to_frame()
    columns = ["subgroup", "n_samples", "predicted", "observed"]
    pairs = [
        frame[columns].sort_values("subgroup").reset_index(drop=True)
        for frame in (
            crossed[[column == ("site", "sex") for column in crossed["column"]]],
            expected[expected["column"] == "pair"],
        )
    ]
    pd.testing.assert_frame_equal(*pairs)
    assert len(pairs[0]) == 6
    named = {name for name in crossed["column"] if isinstance(name, tuple)}
    assert named == {("site", "sex"), ("sex", "copy")}  # a column and its copy have no crossing


def test_what_is_common_does_not_count():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, size=600)
    X = rng.normal(size=(600, 4))
    y = rng.random(600) < expit(z)
    overconfident = expit(2 * z + 0.5)
    assert find_miscalibrated_subgroups(y, overconfident, X, **OPTIONS).p_value > 0.05
    result = find_miscalibrated_subgroups(y, overconfident, X, recalibrate=False, **OPTIONS)
    assert result.p_value == 0.01


@pytest.mark.parametrize("error", ["step", "halved"])
def test_columns_that_follow_the_risk_are_not_blamed(error):
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.02, 0.98, 5000)
    surest = expit(logit(proba) / 2) if error == "halved" else 0.55
    y = rng.random(5000) < np.where(proba > (0.5 if error == "halved" else 0.7), surest, proba)
    X = {f"noise {s}": logit(proba) + s * rng.normal(size=5000) for s in (0.5, 1, 2)}
    assert find_miscalibrated_subgroups(y, proba, X, n_resamples=99, random_state=0).p_value > 0.05


def test_p_values_account_for_the_search():
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, proba, _ = problem(rng, 100)
        result = find_miscalibrated_subgroups(
            y, proba, rng.normal(size=(100, 5)), recalibrate=False, n_resamples=19, random_state=0
        )
        rejected += result.p_value <= 0.1
    assert rejected <= 4 + 4 * np.sqrt(40 * 0.1 * 0.9)


def test_classes_by_their_confidence():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=1500)
    by = rng.choice(["a", "b"], size=1500)
    truth = np.where((by == "a")[:, None], 1 / 3, proba)
    y = (rng.random(1500)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    result = find_miscalibrated_subgroups(y, proba, {"by": by}, **OPTIONS)
    assert result.p_value == 0.01
    own = by == result.subgroup[0]
    assert result.predicted[0] == pytest.approx(proba[own].max(axis=1).mean())
    assert result.observed[0] == pytest.approx(np.mean(y[own] == proba[own].argmax(axis=1)))


def three_classes(rng, n, change=lambda proba, by: proba):
    proba, by = rng.dirichlet(np.ones(3), size=n), rng.choice(["a", "b"], size=n)
    truth = change(proba, by)
    y = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    return np.array(["ant", "bee", "cat"])[y], proba, {"by": by, "x": rng.normal(size=n)}


def test_each_class_by_itself():
    def change(proba, by):  # bees turn to cats, whatever is predicted of ants
        moved = np.where(by == "b", 0.6, 0.0)[:, None] * proba[:, [1]]
        return proba + moved * [0, -1, 1]

    y, proba, X = three_classes(np.random.default_rng(0), 800, change)
    result = find_miscalibrated_subgroups(y, proba, X, multi_class="classwise", **OPTIONS)
    assert result.p_value == 0.01
    assert result.column[0] == "by"
    assert {result.label[k] for k in range(2)} <= {"bee", "cat"}
    assert "ant" in result.label
    assert result.column_p_values["x"] > 0.05
    k, own = ["ant", "bee", "cat"].index(result.label[0]), X["by"] == result.subgroup[0]
    assert result.predicted[0] == pytest.approx(proba[own, k].mean())
    assert result.observed[0] == pytest.approx(np.mean(y[own] == result.label[0]))
    lines = repr(result).splitlines()
    assert lines[0].split()[:4] == ["column", "subgroup", "label", "samples"]
    assert result.to_frame()["label"].tolist() == result.label
    n_candidates = len(result.column) // 3
    one = find_miscalibrated_subgroups(y == "bee", proba[:, 1], X, **OPTIONS)
    assert len(one.column) == n_candidates


@pytest.mark.parametrize("in_groups", [False, True])
def test_statistics_of_classes_are_those_of_each_against_the_rest(in_groups):
    rng = np.random.default_rng(0)
    y, proba, X = three_classes(rng, 60)
    data = check_predictions(y, proba, sample_weight=rng.random(60))
    groups = np.arange(60) // 2
    data = with_groups(data, y, groups, None) if in_groups else data
    candidates = [Candidate("by", "", X["by"] == "a"), Candidate("x", "", X["x"] > 0.3)]
    search = ClassSearch(data, candidates, _get_lens("classwise"), recalibrate=False)
    values = with_draws(search, 5)
    assert values.shape == (6, 6)
    for k, name in enumerate(("ant", "bee", "cat")):
        alone = check_predictions(y == name, proba[:, k], sample_weight=data.weight)
        expected = CandidateScores(alone, candidates)(alone.weighted_residuals[None])[0]
        np.testing.assert_allclose(values[0, 2 * k : 2 * k + 2], expected, rtol=1e-12)
    assert (np.ptp(values, axis=0) > 0).all()


class EachClass:
    """Each class against the rest, as a lens of a user."""

    def reduce(self, data):
        for k, name in enumerate(data.classes):
            yield BinaryProblem(data.label == k, data.matrix[:, k], name=str(name))


def test_lenses_are_searched_like_their_problems():
    y, proba, X = three_classes(np.random.default_rng(0), 60)
    options = OPTIONS | {"n_resamples": 19}
    expected = find_miscalibrated_subgroups(y, proba, X, multi_class="classwise", **options)
    result = find_miscalibrated_subgroups(y, proba, X, multi_class=EachClass(), **options)
    assert result.to_frame().equals(expected.to_frame())
    lens = Ordinal(["ant", "bee", "cat"])
    result = find_miscalibrated_subgroups(y, proba, X, multi_class=lens, **options)
    assert set(result.label) == {"at most ant", "at most bee"}
    for k, label in enumerate(result.label):
        rows = X["by"] == result.subgroup[k]
        if rows.any():
            n_first = 1 if label == "at most ant" else 2
            event = proba[rows, :n_first].sum(axis=1)
            assert result.predicted[k] == pytest.approx(event.mean())
            assert result.observed[k] == pytest.approx(np.mean(y[rows] <= label[-3:]))
    of_two = ClassGroups([["ant"], ["bee", "cat"]])
    result = find_miscalibrated_subgroups(y, proba, X, multi_class=of_two, **options)
    alone = find_miscalibrated_subgroups(y != "ant", proba[:, 1:].sum(axis=1), X, **options)
    np.testing.assert_allclose(np.sort(result.observed), np.sort(alone.observed))


def test_searches_refuse_lenses_without_a_law_or_of_some_samples():
    y, proba, X = three_classes(np.random.default_rng(0), 60)

    class Half:
        def reduce(self, data):
            yield BinaryProblem(data.label[:30] == 0, data.matrix[:30, 0], rows=np.arange(30))

    with pytest.raises(ValueError, match="must yield problems of all samples"):
        find_miscalibrated_subgroups(y, proba, X, multi_class=Half())
    matrix = np.stack([y == "ant", y == "bee"], axis=1)
    with pytest.raises(ValueError, match="Search each label by itself"):
        find_miscalibrated_subgroups(matrix, proba[:, :2], X, multi_class=Multilabel())


def test_what_is_common_to_all_classes_does_not_count():
    def sharper(proba, by):
        return proba**0.5 / (proba**0.5).sum(axis=1, keepdims=True)

    y, proba, X = three_classes(np.random.default_rng(0), 500, sharper)
    options = OPTIONS | {"multi_class": "classwise"}
    common = find_miscalibrated_subgroups(y, proba, X, **options).p_value
    assert common > 0.05
    assert find_miscalibrated_subgroups(y, proba, X, recalibrate=False, **options).p_value < common


def rejections(find, n_problems, level=0.1):
    """How often p-values of problems are at most the level, and how often at most."""
    found = np.mean([find(seed).p_value <= level for seed in range(n_problems)])
    return found, level + 4 * np.sqrt(level * (1 - level) / n_problems)


def test_p_values_account_for_the_classes():
    def find(seed):
        y, proba, X = three_classes(np.random.default_rng(seed), 80)
        options = {"multi_class": "classwise", "recalibrate": False, "n_resamples": 19}
        return find_miscalibrated_subgroups(y, proba, X, random_state=seed, **options)

    found, most = rejections(find, 40)
    assert found <= most


def forecasts(rng, n, change=lambda z, X: z, std=1.0):
    X = {"age": rng.uniform(18, 90, size=n), "site": rng.choice(["a", "b", "c"], size=n)}
    mean = rng.normal(size=n)
    return mean + change(rng.normal(size=n), X), GaussianForecast(mean, std), X


@pytest.mark.parametrize(
    ("change", "std"),
    [
        (lambda z, X: z + 0.8 * (X["site"] == "b"), 1.0),
        (lambda z, X: z * np.where(X["site"] == "b", 2.0, 1.0), 1.0),
        (lambda z, X: z * np.where(X["site"] == "b", 1.6, 0.8), 0.5),  # all are off, too
    ],
)
@pytest.mark.parametrize("kind", [GaussianForecast, EnsembleForecast, QuantileForecast])
def test_forecasts(change, std, kind):
    rng = np.random.default_rng(0)
    y, forecast, X = forecasts(rng, 600, change, std)
    if kind is EnsembleForecast:
        forecast = EnsembleForecast(forecast.sample(20, random_state=0))
    elif kind is QuantileForecast:
        levels = [0.1, 0.25, 0.5, 0.75, 0.9]
        forecast = QuantileForecast(forecast.quantiles(levels), levels)
    result = find_miscalibrated_subgroups(y, forecast, X, **OPTIONS)
    assert result.p_value == 0.01
    assert (result.column[0], result.subgroup[0]) == ("site", "b")
    assert result.column_p_values["age"] > 0.05
    own = X["site"] == "b"
    assert result.observed[0] == pytest.approx(y[own].mean())
    if kind is QuantileForecast:
        assert np.isnan(result.predicted).all()
    else:
        assert result.predicted[0] == pytest.approx(forecast.mean()[own].mean())
    if kind is not EnsembleForecast:
        low, high = forecast.interval(0.8)
        covered = np.mean((low <= y)[own] & (y <= high)[own])
        assert result.coverage[0] == pytest.approx(covered, abs=1e-12)
    assert repr(result).splitlines()[0].split()[-2:] == ["coverage", "p-value"]
    assert "coverage" in result.to_frame()


@pytest.mark.parametrize("recalibrate", [False, True])
def test_statistics_of_forecasts_by_loops(recalibrate):
    rng = np.random.default_rng(0)
    y, forecast, X = forecasts(rng, 50)
    weight = rng.random(50)
    data = check_forecasts(y, forecast, sample_weight=weight)
    candidates = [Candidate("site", "", X["site"] == "b"), Candidate("age", "", X["age"] > 60)]
    search = ForecastSearch(
        data, candidates, recalibrate=recalibrate, random_state=np.random.RandomState(0)
    )
    values = with_draws(search, 1)[0]
    transform, share = forecast.pit(y), weight / weight.sum()
    if recalibrate:
        transform = np.array([(np.sum(transform <= one) - 0.5) / 50 for one in transform])
    for value, candidate in zip(values, candidates, strict=True):
        common = share[candidate.rows].sum() if recalibrate else 0.0
        contrast = share * (candidate.rows - common)
        expected = 0.0
        for k in (1, 2):
            polynomial = Legendre.basis(k, domain=[0, 1])(transform) * np.sqrt(2 * k + 1)
            expected += (contrast @ polynomial) ** 2 / np.sum(contrast**2)
        assert value == pytest.approx(expected, rel=1e-10)


def test_legendre_terms_are_orthonormal():
    u = (np.arange(10_000) + 0.5) / 10_000
    terms = legendre(u)
    np.testing.assert_allclose(terms.mean(axis=1), 0, atol=1e-7)
    np.testing.assert_allclose(terms @ terms.T / 10_000, np.eye(2), atol=1e-6)


@pytest.mark.parametrize("kind", ["ensemble", "counts", "too narrow"])
def test_p_values_of_forecasts_account_for_the_search(kind):
    def find(seed):
        rng = np.random.default_rng(seed)
        if kind == "ensemble":
            values = rng.normal(size=(60, 5)) + rng.normal(size=(60, 1))
            y, forecast = values[:, 0], EnsembleForecast(values[:, 1:])
        elif kind == "counts":
            rate = rng.uniform(0.2, 2.0, size=60)
            y, forecast = rng.poisson(rate), DistributionForecast(poisson(rate))
        else:
            y, forecast = rng.normal(size=60), GaussianForecast(np.zeros(60), 0.5)
        options = {"recalibrate": kind == "too narrow", "n_resamples": 19}
        return find_miscalibrated_subgroups(
            y, forecast, rng.normal(size=(60, 3)), random_state=seed, **options
        )

    found, most = rejections(find, 40)
    assert 0 < found <= most


def test_forecasts_that_are_wrong_alike():
    y, forecast, X = forecasts(np.random.default_rng(0), 300, lambda z, X: 2 * z + 1)
    assert find_miscalibrated_subgroups(y, forecast, X, **OPTIONS).p_value > 0.05
    result = find_miscalibrated_subgroups(y, forecast, X, recalibrate=False, **OPTIONS)
    assert (result.p_values == 0.01).all()


def test_groups_and_order_of_forecasts():
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(40), 16)
    mean, X = rng.normal(size=40)[group], {"x": rng.normal(size=40)[group]}
    y = mean + rng.normal(size=40)[group] + 0.1 * rng.normal(size=640)
    forecast = GaussianForecast(mean + 0.01 * rng.normal(size=640), 1.0)
    for recalibrate in (True, False):
        options = OPTIONS | {"recalibrate": recalibrate}
        alone = find_miscalibrated_subgroups(y, forecast, X, **options)
        grouped = find_miscalibrated_subgroups(y, forecast, X, groups=group, **options)
        assert alone.p_value <= 0.05 < grouped.p_value
        order = rng.permutation(640)
        more = {"x": np.append(X["x"][order], 9.0)}
        shuffled = find_miscalibrated_subgroups(
            np.append(y[order], 5.0),
            GaussianForecast(
                np.append(forecast.mean()[order], 0.0), np.append(forecast.std()[order], 1.0)
            ),
            more,
            sample_weight=np.append(np.ones(640), 0.0),
            **options,
        )
        np.testing.assert_array_equal(shuffled.p_values, alone.p_values)


def test_order_and_samples_of_weight_0_do_not_matter():
    rng = np.random.default_rng(0)
    y, proba, X = problem(rng, 150)
    expected = find_miscalibrated_subgroups(y, proba, X, **OPTIONS)
    order = rng.permutation(150)
    shuffled = {name: column[order] for name, column in X.items()}
    found = find_miscalibrated_subgroups(y[order], proba[order], shuffled, **OPTIONS)
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    assert found.subgroup == expected.subgroup
    more = {"age": np.append(X["age"], 5.0), "site": np.append(X["site"], "d")}
    weight = np.append(np.ones(150), 0.0)
    found = find_miscalibrated_subgroups(
        np.append(y, True), np.append(proba, 0.5), more, sample_weight=weight, **OPTIONS
    )
    np.testing.assert_array_equal(found.p_values, expected.p_values)


def test_groups():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 10)
    proba = rng.random(60)[group]
    y = rng.random(60)[group] < proba  # the same draw for all of a group
    X = {"x": rng.normal(size=60)[group]}
    assert find_miscalibrated_subgroups(y, proba, X, groups=group, **OPTIONS).p_value > 0.05
    assert find_miscalibrated_subgroups(y, proba, X, **OPTIONS).p_value <= 0.05


def test_labels_that_can_be_separated_and_constant_predictions():
    x = np.arange(60) % 2
    proba = np.linspace(0.1, 0.9, 60)
    for y, p in ((proba > 0.5, proba), (x == 1, np.full(60, 0.5)), (np.ones(60, int), proba)):
        result = find_miscalibrated_subgroups(y, p, {"x": x}, labels=[0, 1], **OPTIONS)
        assert 0 < result.p_value <= 1


def test_table():
    rng = np.random.default_rng(0)
    result = find_miscalibrated_subgroups(*problem(rng, 200), **OPTIONS)
    frame = result.to_frame()
    assert frame["p_value"].tolist() == sorted(frame["p_value"])
    lines = repr(result).splitlines()
    assert lines[0].split() == ["column", "subgroup", "samples", "predicted", "observed", "p-value"]
    assert lines[1].split()[0] == frame["column"][0]
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.zeros(40)}, "X must have two dimensions"),
        ({"X": np.zeros((39, 1))}, r"\(y_true: 40, X: 39\)"),
        ({"X": {"a": [1, 2]}}, r"X\['a'\]: 2"),
        ({"X": np.zeros((40, 2))}, "X must have some subgroup of at least min_samples=20"),
        (
            {"y_pred": GaussianForecast(np.zeros(40), 1.0), "labels": [0, 1]},
            "labels must be None for forecasts",
        ),
        ({"multi_class": "top-label"}, "'multi_class' parameter"),
        ({"n_bins": 1}, "'n_bins' parameter"),
    ],
)
def test_bad_input(arguments, message):
    rng = np.random.default_rng(0)
    arguments = {"y_true": [0, 1] * 20, "y_pred": rng.random(40)} | arguments
    arguments = {"X": {"a": [0, 1] * 20}} | arguments
    with pytest.raises((ValueError, TypeError), match=message):
        find_miscalibrated_subgroups(**arguments)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400])
def test_size_for_predictions_that_are_miscalibrated_alike(n):
    repetitions, level, rejected = 300, 0.1, 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        z = rng.normal(0, 1.5, size=n)
        y = rng.random(n) < expit(z)
        result = find_miscalibrated_subgroups(
            y, expit(2 * z + 0.5), rng.normal(size=(n, 4)), n_resamples=19, random_state=seed
        )
        rejected += result.p_value <= level
    assert rejected / repetitions <= level + 4 * np.sqrt(level * (1 - level) / repetitions)


def test_impossible_labels_are_found():
    rng = np.random.default_rng(0)
    proba = rng.random(500)
    label = (rng.random(500) < proba).astype(int)
    inside = np.arange(500) < 30
    wrong = np.where(inside, 1.0 - label, proba)
    search = find_miscalibrated_subgroups(
        label, wrong, {"g": inside}, recalibrate=False, n_resamples=99, random_state=0
    )
    assert search.p_value == 0.01
