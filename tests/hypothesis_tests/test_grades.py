"""The test of default rates, grade by grade, equals the tests of SciPy on each grade."""

import numpy as np
import pandas as pd
import pytest
from problems import random_problem
from scipy.integrate import quad_vec
from scipy.special import betainc, ndtr, ndtri
from scipy.stats import beta, binom, binomtest, false_discovery_control, norm
from sklearn.base import clone

from skcalib.hypothesis_tests import RatingGradeTest

TINY = np.finfo(np.float64).tiny
SIDES = ("greater", "less", "two-sided")

both_methods = pytest.mark.parametrize("method", ["binomial", "jeffreys"])
all_sides = pytest.mark.parametrize("alternative", SIDES)


def rating(rng, sizes=(50, 200, 5, 80), rates=(0.02, 0.05, 0.2, 0.6), factor=1.0):
    """Predictions and outcomes in random order; defaults are `factor` times as frequent."""
    proba = np.repeat(rates, sizes)
    proba = proba[rng.permutation(len(proba))]
    return proba, (rng.random(len(proba)) < np.minimum(factor * proba, 1)).astype(int)


def close(value, tolerance=1e-10):
    return pytest.approx(value, rel=tolerance, abs=1e-300)


@all_sides
@pytest.mark.parametrize("seed", range(4))
def test_binomial_p_values_are_those_of_scipy(seed, alternative):
    proba, label = rating(np.random.default_rng(seed), factor=1.0 + seed)
    test = RatingGradeTest(alternative=alternative).fit(proba, label)
    assert test.grades_.tolist() == [0.02, 0.05, 0.2, 0.6]
    assert test.n_samples_.tolist() == [50, 200, 5, 80]
    for k, rate in enumerate(test.grades_):
        outcomes = label[proba == rate]
        assert test.n_positives_[k] == outcomes.sum()
        assert test.predicted_rates_[k] == close(rate)
        one_sided = [
            binomtest(outcomes.sum(), len(outcomes), rate, alternative=side).pvalue
            for side in SIDES[:2]
        ]
        expected = dict(zip(SIDES, [*one_sided, min(1, 2 * min(one_sided))], strict=True))
        assert test.p_values_[k] == close(expected[alternative])


def test_binomial_by_hand():
    # two of three, with probability 1/4: 3·(1/16)(3/4) + 1/64; none of one
    test = RatingGradeTest().fit([0.25, 0.25, 0.25, 0.5], [1, 1, 0, 0])
    np.testing.assert_allclose(test.p_values_, [10 / 64, 1], rtol=1e-14)
    np.testing.assert_allclose(test.adjusted_p_values_, [20 / 64, 1], rtol=1e-14)
    assert test.p_value_ == close(20 / 64)
    assert RatingGradeTest(alternative="less").fit([0.25] * 3, [1, 1, 0]).p_value_ == close(63 / 64)


def test_jeffreys_by_hand():
    # of one sample and no default, Beta(1/2, 3/2): the density is (2/π) √((1 − x)/x)
    test = RatingGradeTest(method="jeffreys", labels=[0, 1]).fit([0.5], [0])
    assert test.p_value_ == close((np.pi / 2 + 1) / np.pi)
    test = RatingGradeTest(method="jeffreys", alternative="less", labels=[0, 1]).fit([0.5], [0])
    assert test.p_value_ == close((np.pi / 2 - 1) / np.pi)


def test_jeffreys_p_values_are_quantiles_of_the_posterior():
    proba, label = rating(np.random.default_rng(0), factor=1.5)
    greater = RatingGradeTest(method="jeffreys").fit(proba, label)
    for k in range(4):
        positive, n = greater.n_positives_[k], greater.n_samples_[k]
        quantile = beta.ppf(greater.p_values_[k], positive + 0.5, n - positive + 0.5)
        assert quantile == close(greater.predicted_rates_[k], 1e-8)
    less = RatingGradeTest(method="jeffreys", alternative="less").fit(proba, label)
    both = RatingGradeTest(method="jeffreys", alternative="two-sided").fit(proba, label)
    np.testing.assert_allclose(greater.p_values_ + less.p_values_, 1, rtol=1e-12)
    twice = 2 * np.minimum(greater.p_values_, less.p_values_)
    np.testing.assert_allclose(both.p_values_, np.minimum(twice, 1), rtol=1e-12)
    # between the tails of the binomial distribution with and without the outcome itself
    binomial = RatingGradeTest().fit(proba, label).p_values_
    beyond = 1 - RatingGradeTest(alternative="less").fit(proba, label).p_values_
    assert (beyond < greater.p_values_).all()
    assert (greater.p_values_ < binomial).all()


@both_methods
def test_exchanged_classes_exchange_the_sides(method):
    proba, label = rating(np.random.default_rng(2))
    for side, mirrored in (("greater", "less"), ("less", "greater"), ("two-sided", "two-sided")):
        one = RatingGradeTest(method=method, alternative=side).fit(proba, label)
        other = RatingGradeTest(method=method, alternative=mirrored).fit(1 - proba, 1 - label)
        np.testing.assert_allclose(other.p_values_[::-1], one.p_values_, rtol=1e-9)
        assert other.p_value_ == close(one.p_value_, 1e-9)


def test_adjusted_p_values_by_loops():
    proba, label = rating(np.random.default_rng(3), factor=1.7)
    test = RatingGradeTest().fit(proba, label)
    p_values = test.p_values_.tolist()
    for k, p in enumerate(p_values):
        # the largest of what Holm's method asks of this p-value and the smaller ones
        smaller = [q for q in p_values if q <= p]
        expected = max(q * sum(r >= q for r in p_values) for q in smaller)
        assert test.adjusted_p_values_[k] == close(min(expected, 1))
    assert test.p_value_ == test.adjusted_p_values_.min() == close(4 * min(p_values))
    # Holm's method is never more lenient than that of Benjamini and Hochberg
    assert (test.adjusted_p_values_ >= false_discovery_control(p_values) - 1e-12).all()


@both_methods
def test_grades_average_their_predictions(method):
    rng = np.random.default_rng(0)
    grades = rng.choice(["A", "BB", "C"], size=90)
    proba, label = rng.random(90), rng.integers(2, size=90)
    test = RatingGradeTest(method=method).fit(proba, label, grades=grades)
    means = pd.Series(proba).groupby(grades).mean().sort_values()
    assert test.grades_.tolist() == means.index.tolist() != ["A", "BB", "C"]
    np.testing.assert_allclose(test.predicted_rates_, means, rtol=1e-12)
    same = RatingGradeTest(method=method).fit(means.loc[grades].to_numpy(), label)
    np.testing.assert_allclose(same.p_values_, test.p_values_, rtol=1e-9)
    numbered = RatingGradeTest(method=method).fit(
        proba, label, grades=pd.Series(grades).map(ord_sum)
    )
    np.testing.assert_allclose(np.sort(numbered.p_values_), np.sort(test.p_values_), rtol=1e-12)


def test_grades_are_in_the_order_of_their_risk_or_of_their_categories():
    names, rates = ["AAA", "AA", "B", "C"], [0.01, 0.02, 0.1, 0.3]
    proba, grades = np.repeat(rates, 20), np.repeat(names, 20)
    label = np.arange(80) % 7 == 0
    by_risk = [grades, grades.tolist(), pd.Series(grades, dtype="category")]
    by_hand = pd.Categorical(grades, names[::-1], ordered=True)
    for column, expected in [(column, names) for column in by_risk] + [(by_hand, names[::-1])]:
        test = RatingGradeTest().fit(proba, label, grades=column)
        assert test.grades_.tolist() == expected
        counted = [label[grades == name].sum() for name in expected]
        assert test.n_positives_.tolist() == counted


def test_grades_of_equal_risk_are_in_the_order_of_their_names():
    for seed in range(20):
        sizes = np.random.default_rng(seed).integers(20, 300, 3)
        grades = np.repeat(["A", "B", "C"], sizes)
        test = RatingGradeTest().fit(np.full(sizes.sum(), 0.013), grades == "B", grades=grades)
        assert test.grades_.tolist() == ["A", "B", "C"]


@pytest.mark.parametrize(
    "options", [{}, {"method": "jeffreys"}, {"correlation": 0.2, "alternative": "two-sided"}]
)
def test_the_total_is_one_grade_of_all(options):
    rng = np.random.default_rng(0)
    proba, grades = rng.uniform(0.01, 0.2, 300), rng.choice(["A", "B"], 300)
    label = rng.random(300) < 2 * proba
    for groups in (None, np.arange(300) // 2) if not options else (None,):
        test = RatingGradeTest(**options, random_state=0)
        total = test.fit(proba, label, grades=grades, groups=groups).total_
        whole = clone(test).fit(proba, label, grades=np.zeros(300, int), groups=groups).table_
        assert total == {name: values.item() for name, values in whole.items()} | {"grade": "total"}
        assert test.p_value_ == test.adjusted_p_values_.min()


def ord_sum(grade):
    return sum(map(ord, grade))


def test_binomial_tails_of_uneven_predictions_are_conservative():
    # all outcomes of four predictions, and the chance of each number of them
    proba = np.array([0.01, 0.1, 0.3, 0.5])
    law = np.ones(1)
    for p in proba:
        law = np.convolve(law, [1 - p, p])
    for side in SIDES:
        test = RatingGradeTest(alternative=side, labels=[0, 1])
        p_values = [
            test.fit(proba, (np.arange(4) < d).astype(int), grades=["A"] * 4).p_value_
            for d in range(5)
        ]
        for d in (0, 2, 3, 4):  # one outcome or more away from the expected 0.91
            level = p_values[d]
            if level < 0.5:
                assert law[np.array(p_values) <= level].sum() <= level


@both_methods
def test_certain_grades(method):
    right = RatingGradeTest(method=method, alternative="two-sided", labels=[0, 1])
    right.fit([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1])
    assert right.p_values_.tolist() == [1, 1]
    wrong = RatingGradeTest(method=method, labels=[0, 1]).fit([0.0, 0.0, 1.0, 1.0], [0, 1, 1, 0])
    np.testing.assert_array_equal(wrong.p_values_, [TINY, 1])
    assert wrong.p_value_ == 2 * TINY
    less = RatingGradeTest(method=method, alternative="less").fit(
        [0.0, 0.0, 1.0, 1.0], [0, 1, 1, 0]
    )
    np.testing.assert_array_equal(less.p_values_, [1, TINY])


def test_few_expected_defaults_make_jeffreys_reject_without_any():
    def p_value(expected, method):
        proba, label = np.full(100, expected / 100), np.zeros(100)
        return RatingGradeTest(method=method, labels=[0, 1]).fit(proba, label).p_value_

    assert p_value(0.0019, "jeffreys") < 0.05 < p_value(0.0021, "jeffreys")
    assert p_value(0.0019, "binomial") == 1


def test_more_than_two_classes_are_tested_by_confidence():
    label, proba = random_problem(np.random.default_rng(0), 80, 4)
    proba = np.round(proba, 1)
    proba /= proba.sum(axis=1, keepdims=True)
    several = RatingGradeTest().fit(proba, label)
    binary = RatingGradeTest().fit(proba.max(axis=1), proba.argmax(axis=1) == label)
    np.testing.assert_array_equal(several.p_values_, binary.p_values_)
    assert several.classes_.tolist() == [0, 1, 2, 3]


def test_size_and_power():
    rng = np.random.default_rng(0)
    for factor, lowest, highest in ((1.0, 0.0, 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)), (2, 0.9, 1)):
        p_values = [RatingGradeTest().fit(*rating(rng, factor=factor)).p_value_ for _ in range(200)]
        assert lowest <= np.mean(np.array(p_values) <= 0.05) <= highest


BAD = {
    "weights": ({"sample_weight": [1.0, 2.0, 1.0]}, "sample_weight must be equal .*Leave it out"),
    "zero weight": ({"sample_weight": [1.0, 0.0, 1.0]}, "sample_weight must be equal"),
    "length": ({"grades": ["A", "B"]}, "y and grades must have the same length"),
    "missing": ({"grades": ["A", None, "B"]}, "grades must hold .*without missing values"),
    "nan": ({"grades": [1.0, np.nan, 2.0]}, "grades must not hold missing values"),
    "fractions": ({"grades": [0.1, 0.2, 0.3]}, "grades .*found the fraction"),
    "table": ({"grades": [["A", "B"]] * 3}, "grades must be 1-D"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        RatingGradeTest().fit([0.1, 0.2, 0.3], [0, 1, 1], **options)


@pytest.mark.parametrize("parameters", [{"method": "exact"}, {"alternative": "larger"}])
def test_bad_parameters(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"The '{name}' parameter of RatingGradeTest must"):
        RatingGradeTest(**parameters).fit([0.2, 0.7], [0, 1])


def test_equal_weights_are_no_weights():
    proba, label = rating(np.random.default_rng(0))
    expected = RatingGradeTest().fit(proba, label).p_value_
    assert (
        RatingGradeTest().fit(proba, label, sample_weight=np.full(len(label), 3.0)).p_value_
        == expected
    )


def vasicek_tail(n, defaults, rate, correlation):
    """P(D >= d) by Gauss-Legendre quadrature of the binomial tail over the common factor."""
    if rate in (0, 1) or defaults in (0, n + 1):
        return float(defaults == 0 or (rate == 1 and defaults <= n))
    node, weight = np.polynomial.legendre.leggauss(20)
    left = np.arange(-12, 12, 0.02)[:, None]
    factor = left + 0.01 * (1 + node)
    proba = ndtr((ndtri(rate) - correlation**0.5 * factor) / (1 - correlation) ** 0.5)
    tail = betainc(defaults, n - defaults + 1, proba)
    return float(np.sum(0.01 * weight * norm.pdf(factor) * tail))


def one_grade(n, defaults, rate):
    return np.full(n, rate), (np.arange(n) < defaults).astype(int)


@pytest.mark.parametrize("correlation", [0.001, 0.12, 0.9])
@pytest.mark.parametrize(
    ("n", "defaults", "rate"),
    [(1, 1, 0.3), (300, 0, 0.01), (300, 12, 0.01), (40, 40, 0.5), (50, 1, 1e-5), (7, 2, 0.999)],
)
def test_correlation_is_integrated_over_the_factor(n, defaults, rate, correlation):
    data = one_grade(n, defaults, rate)
    options = {"correlation": correlation, "labels": [0, 1]}
    greater = RatingGradeTest(**options).fit(*data).p_value_
    assert greater == close(vasicek_tail(n, defaults, rate, correlation), 1e-9)
    less = RatingGradeTest(alternative="less", **options).fit(*data).p_value_
    assert less == close(vasicek_tail(n, n - defaults, 1 - rate, correlation), 1e-9)
    both = RatingGradeTest(alternative="two-sided", **options).fit(*data).p_value_
    assert both == close(min(1, 2 * min(greater, less)))


def test_correlation_at_the_limits():
    def p_value(n, defaults, rate, correlation):
        test = RatingGradeTest(correlation=correlation, labels=[0, 1])
        return test.fit(*one_grade(n, defaults, rate)).p_value_

    assert p_value(300, 9, 0.01, 1e-6) == close(binom.sf(8, 300, 0.01), 1e-3)
    assert p_value(300, 9, 0.01, 1 - 1e-9) == close(0.01, 1e-3)  # all or nobody
    assert p_value(1, 1, 1e-300, 0.12) == close(1e-300)
    assert p_value(3, 1, 0.0, 0.12) == TINY
    assert p_value(3, 0, 0.0, 0.12) == p_value(3, 2, 1.0, 0.12) == 1
    n, d, rate = 10**6, 20_000, 0.01
    assert p_value(n, d, rate, 0.12) == close(vasicek_tail(n, d, rate, 0.12), 1e-8)


def test_most_of_many_rows_are_computed_in_blocks():
    proba = np.linspace(0.01, 0.9, 2500)
    test = RatingGradeTest(correlation=0.2, labels=[0, 1]).fit(proba, np.ones(2500, dtype=int))
    np.testing.assert_allclose(test.p_values_, proba, rtol=1e-10)  # of one debtor


@pytest.mark.parametrize("correlation", [0.0, 0.12])
def test_ends_of_intervals_are_where_tests_begin_to_reject(correlation):
    proba, label = rating(
        np.random.default_rng(0), sizes=(50, 9, 5, 80), rates=(0.001, 0.05, 0.2, 0.6)
    )
    label[proba == 0.2] = 1
    test = RatingGradeTest(correlation=correlation, confidence_level=0.9).fit(proba, label)
    for n, d, low, high in zip(
        *(test.table_[k] for k in ("n", "defaults", "low", "high")), strict=True
    ):
        if correlation:
            tails = [vasicek_tail(n, d, low, 0.12), 1 - vasicek_tail(n, d + 1, high, 0.12)]
        else:
            tails = [binom.sf(d - 1, n, low), binom.cdf(d, n, high)]
        assert (low, tails[0]) == ((0, 1) if d == 0 else (low, close(0.05, 1e-9)))
        assert (high, tails[1]) == ((1, tails[1]) if d == n else (high, close(0.05, 1e-9)))


@pytest.mark.parametrize("correlation", [0.0, 0.12, 0.24])
@pytest.mark.parametrize(("n", "rate"), [(1, 0.01), (50, 0.002), (1000, 0.0005), (300, 0.01)])
def test_intervals_cover_where_defaults_are_rare(n, rate, correlation):
    rng = np.random.default_rng(0)
    factor = rng.standard_normal(10_000)
    given_factor = (norm.ppf(rate) - correlation**0.5 * factor) / (1 - correlation) ** 0.5
    defaults, count = np.unique(rng.binomial(n, norm.cdf(given_factor)), return_counts=True)
    # each number of defaults is a grade of its own
    grades = np.repeat(np.arange(len(defaults)), n)
    label = np.concatenate([one_grade(n, d, rate)[1] for d in defaults])
    test = RatingGradeTest(correlation=correlation, labels=[0, 1])
    table = test.fit(np.full(len(label), rate), label, grades=grades).table_
    covers = (table["low"] <= rate) & (rate <= table["high"])
    assert count @ covers / count.sum() >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 10_000)


def test_jeffreys_intervals_are_quantiles_of_the_posterior():
    proba, label = np.repeat([0.1, 0.2, 0.3], 20), np.repeat([0, 1, 0, 1], [20, 7, 13, 20])
    table = RatingGradeTest(method="jeffreys").fit(proba, label).table_
    np.testing.assert_allclose(table["low"], [0, *beta.ppf(0.025, [7.5, 20.5], [13.5, 0.5])])
    np.testing.assert_allclose(table["high"], [*beta.ppf(0.975, [0.5, 7.5], [20.5, 13.5]), 1])


def test_table_is_a_data_frame_and_a_text():
    n, defaults, rates = [2000, 1000, 400], [3, 40, 32], [0.001, 0.01, 0.05]
    label = np.concatenate([one_grade(*row, 0)[1] for row in zip(n, defaults, strict=True)])
    grades = np.repeat(["A", "B", "C"], n)
    test = RatingGradeTest().fit(np.repeat(rates, n), label, grades=grades)
    frame = pd.DataFrame(test.table_).set_index("grade")
    assert frame["light"].to_dict() == {"A": "green", "B": "red", "C": "yellow"}
    assert frame["defaults"].tolist() == defaults
    np.testing.assert_allclose(frame["PD"], rates)
    np.testing.assert_allclose(frame["rate"], frame["defaults"] / frame["n"])
    np.testing.assert_array_equal(frame["p_value"], test.p_values_)
    np.testing.assert_array_equal(frame["adjusted_p_value"], test.adjusted_p_values_)
    header, *rows, note, _ = test.summary().splitlines()
    assert header.split() == ["grade", *frame.columns]
    assert len({len(line) for line in (header, *rows)}) == 1
    assert [row.split()[0] for row in rows] == ["A", "B", "C", "total"]
    assert rows[1].split()[2:9] == ["1", "%", "40", "4", "%", "2.87", "%"]
    assert "95 % interval" in note
    with pytest.raises(ValueError, match="not fitted"):
        RatingGradeTest().summary()


def debtors(rng, n_groups, rate, identical):
    """Four rows of each debtor, alike or independent."""
    label = (rng.random((n_groups, 4)) < rate).astype(int)
    if identical:
        label[:] = label[:, :1]
    return np.full(4 * n_groups, rate), label.ravel(), np.repeat(np.arange(n_groups), 4)


def test_groups_count_as_fewer_samples():
    # all rows of a debtor are alike: the interval is nearly that of the debtors
    proba, label, groups = debtors(np.random.default_rng(0), 200, 0.05, identical=True)
    options = {"random_state": 0, "n_resamples": 199}
    test = RatingGradeTest(**options).fit(proba, label, groups=groups)
    debtor = RatingGradeTest().fit(proba[::4], label[::4])
    for end in ("low", "high"):
        np.testing.assert_allclose(test.table_[end], debtor.table_[end], rtol=0.02)
    assert test.p_value_ >= debtor.p_value_
    assert test.p_value_ > RatingGradeTest().fit(proba, label).p_value_
    single = RatingGradeTest(**options).fit(proba, label, groups=np.arange(800))
    for end in ("low", "high"):  # groups of one sample are independent samples
        expected = RatingGradeTest().fit(proba, label).table_[end]
        np.testing.assert_allclose(single.table_[end], expected, rtol=1e-9)


@pytest.mark.parametrize("identical", [False, True])
def test_groups_keep_size_and_coverage(identical):
    rng, n_problems, rejected, covered = np.random.default_rng(0), 150, 0, 0
    for _ in range(n_problems):  # without any default in 36 % of the problems, or 2 %
        proba, label, groups = debtors(rng, 100, 0.01, identical)
        test = RatingGradeTest(n_resamples=99, random_state=0, labels=[0, 1])
        table = test.fit(proba, label, groups=groups).table_
        rejected += test.p_value_ <= 0.05
        covered += table["low"][0] <= 0.01 <= table["high"][0]
    margin = 4 * np.sqrt(0.05 * 0.95 / n_problems)
    assert rejected / n_problems <= 0.05 + margin
    assert covered / n_problems >= 0.95 - margin


def test_groups_of_a_bad_rating_are_found():
    proba, label, groups = debtors(np.random.default_rng(0), 300, 0.1, identical=True)
    assert RatingGradeTest(random_state=0).fit(proba / 3, label, groups=groups).p_value_ < 0.01


@pytest.mark.parametrize(
    ("options", "groups", "message"),
    [
        ({"correlation": 0.1}, [0, 1, 2], "correlation must be 0 with groups; .*Leave out"),
        ({"correlation": 0.1, "method": "jeffreys"}, None, "must be 0 with method='jeffreys'"),
        ({"method": "jeffreys"}, [0, 1, 2], "method must be 'binomial' with groups"),
        ({"correlation": 1e-9}, None, "correlation must be 0 or at least 1e-06; .*Pass 0"),
        ({"correlation": 1.0}, None, "The 'correlation' parameter"),
        ({"confidence_level": 1.0}, None, "The 'confidence_level' parameter"),
        ({}, [0, 1], "groups must"),
    ],
)
def test_bad_dependence(options, groups, message):
    with pytest.raises(ValueError, match=message):
        RatingGradeTest(**options).fit([0.1, 0.2, 0.3], [0, 1, 1], groups=groups)


def test_summary_shows_tiny_p_values_as_bounds():
    test = RatingGradeTest().fit(np.full(500, 0.01), np.arange(500) % 2, grades=["A"] * 500)
    assert test.p_value_ < 1e-6
    assert test.summary().count(" ≤ 1e-6 ") == 4  # of the grade and of all


def counts_of_a_period(n, rate, correlation):
    """P(D = k) for k = 0, …, n by adaptive quadrature over the factor."""

    def density(z):
        given = ndtr((ndtri(rate) - np.sqrt(correlation) * z) / np.sqrt(1 - correlation))
        return binom.pmf(np.arange(n + 1), n, given) * norm.pdf(z)

    return quad_vec(density, -12, 12, epsabs=1e-12)[0]


@pytest.mark.parametrize("correlation", [0.05, 0.4])
def test_periods_have_factors_of_their_own(correlation):
    sizes, rates = [3, 6, 1], [0.1, 0.2, 0.4]
    proba, period = np.repeat(rates, sizes), np.repeat(["a", "b", "c"], sizes)
    law = np.ones(1)
    for size, rate in zip(sizes, rates, strict=True):
        law = np.convolve(law, counts_of_a_period(size, rate, correlation))
    for events in (0, 3, 10):
        label = np.arange(10) < events
        for alternative, expected in (("greater", law[events:]), ("less", law[: events + 1])):
            test = RatingGradeTest(correlation=correlation, alternative=alternative)
            test.fit(proba, label, grades=np.zeros(10, int), periods=period)
            assert test.p_value_ == pytest.approx(expected.sum(), abs=1e-9)
        low, high = test.table_["low"][0], test.table_["high"][0]
        for end, side in ((low, slice(events, None)), (high, slice(events + 1))):
            if 0 < end < 1:
                shared = [counts_of_a_period(size, end, correlation) for size in sizes]
                total = np.convolve(np.convolve(*shared[:2]), shared[2])
                assert total[side].sum() == pytest.approx(0.025, abs=1e-6)
        assert (low == 0, high == 1) == (events == 0, events == 10)


def test_one_period_is_as_none():
    rng = np.random.default_rng(0)
    rates, grades = np.array([0.0, 0.01, 0.1]), rng.integers(0, 3, 600)
    label = rng.random(600) < rates[grades]
    test = RatingGradeTest(correlation=0.12)
    alone = test.fit(rates[grades], label, grades=grades).table_
    table = test.fit(rates[grades], label, grades=grades, periods=np.ones(600, int)).table_
    for name in ("p_value", "low", "high"):
        np.testing.assert_allclose(table[name], alone[name], atol=1e-8)
    with pytest.raises(ValueError, match="periods need a correlation above 0; found 0"):
        RatingGradeTest().fit(rates[grades], label, periods=grades)
