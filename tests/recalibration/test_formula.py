import math
import re
import sqlite3

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib.recalibration import (
    AutoRecalibrator,
    BetaRecalibrator,
    DecisionRecalibrator,
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    IdentityRecalibrator,
    IntervalBinningRecalibrator,
    IsotonicRecalibrator,
    MatrixScalingRecalibrator,
    PairwiseScalingRecalibrator,
    PredictProba,
    PriorShiftRecalibrator,
    QuadraticRecalibrator,
    RecalibratedClassifier,
    ScalingBinningRecalibrator,
    SigmoidRecalibrator,
    SplineRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
    VennAbersRecalibrator,
    export_sql,
    export_table,
)
from skcalib.recalibration._base import OneVsRestRecalibrator
from skcalib.recalibration._maps import states_map
from skcalib.recalibration._registry import RECALIBRATORS, RecalibratorChain

EPS = float(np.finfo(float).eps)

CASES = {
    **{name: entry.recalibrator for name, entry in RECALIBRATORS.items()},
    "steps": IsotonicRecalibrator(strict=False),
    "strict": IsotonicRecalibrator(strict=True),
    "uniform": IntervalBinningRecalibrator("uniform", n_bins=7, pseudo_count=0),
    "uniform, pseudo-count": IntervalBinningRecalibrator("uniform", n_bins=60, pseudo_count=1),
    "shifted": IntervalBinningRecalibrator("uniform", random_shift=True, random_state=0),
    "quantile": IntervalBinningRecalibrator("quantile", n_bins=4),
    "average": AutoRecalibrator(
        [
            ("temperature", TemperatureRecalibrator()),
            ("steps", IsotonicRecalibrator(strict=False)),
            ("pairwise", PairwiseScalingRecalibrator()),
        ]
    ),
    "average without pairs": AutoRecalibrator(
        [
            ("temperature", TemperatureRecalibrator()),
            ("ensemble temperature", EnsembleTemperatureRecalibrator()),
            ("steps", IsotonicRecalibrator(strict=False)),
        ]
    ),
    "chain": PairwiseScalingRecalibrator(
        RecalibratorChain(IsotonicRecalibrator(strict=True), MatrixScalingRecalibrator())
    ),
    "binned chain": ScalingBinningRecalibrator(PairwiseScalingRecalibrator(), n_bins=5),
    "unpenalised": MatrixScalingRecalibrator(
        prior_weight=0, diagonal_penalty=1e-9, off_diagonal_penalty=1e-9, intercept_penalty=1e-9
    ),
}


# Expressions with products of probabilities, or of chained maps, would be too long.
TOO_LONG = {"pairwise scaling", "average", "chain", "binned chain"}

STATED = {name: case for name, case in CASES.items() if states_map(case)}
WRITABLE = {name: case for name, case in STATED.items() if name not in TOO_LONG}


def is_too_long(name, n_classes):
    return name in TOO_LONG or (name == "scaling-binning" and n_classes > 2)


SQL_CASES = [
    (name, n_classes) for name in STATED for n_classes in (2, 3) if not is_too_long(name, n_classes)
]


def problem(n_classes, n=90):
    """Labels as strings, and probabilities with ties, short decimals and exact zeros and ones."""
    rng = np.random.default_rng(n_classes)
    proba = rng.dirichlet(np.full(n_classes, 0.5), n).round(2)
    proba[: n // 2] = rng.dirichlet(np.full(n_classes, 0.5), n // 2)
    proba[:, 0] = np.clip(1 - proba[:, 1:].sum(axis=1), 0, 1)
    proba /= proba.sum(axis=1, keepdims=True)
    u = rng.random((n, 1))
    label = (u > np.cumsum(proba**2 / (proba**2).sum(axis=1, keepdims=True), axis=1)[:, :-1]).sum(1)
    return proba, np.array(["left", "mid", "right"])[-n_classes:][label]


def queries(proba):
    """The calibration data themselves, which hold every breakpoint, and extreme rows."""
    if proba.shape[1] == 2:
        p = np.array([0, 1, EPS, EPS / 2, 1 - EPS, 5e-324, 1e-300, 1e-12, 0.5, 1 / 7, 2 / 7, 1e-5])
        extreme = np.column_stack([1 - p, p])
    else:
        t = 1e-13
        extreme = np.array(
            [[1, 0, 0], [0, 0, 1], [1 - t, t, 0], [1 - t / 2, t / 4, t / 4], [0.5, 0.5, 0]]
        )
    return np.vstack([extreme, np.full((1, proba.shape[1]), 1 / proba.shape[1]), proba])


DATABASES = []


@pytest.fixture(autouse=True)
def close_databases():
    yield
    while DATABASES:
        DATABASES.pop().close()


def sqlite():
    database = sqlite3.connect(":memory:")
    DATABASES.append(database)  # Python 3.13 warns of one that is left open
    try:
        database.execute("SELECT ln(2e0), exp(1e0)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no mathematical functions")
    return database


def duckdb():
    return pytest.importorskip("duckdb").connect()


ENGINES = {"SQLite": sqlite, "DuckDB": duckdb}
all_engines = pytest.mark.parametrize(
    "engine", ["SQLite", pytest.param("DuckDB", marks=pytest.mark.integration)]
)


def table_of(engine, values, columns, kind="DOUBLE"):
    database = ENGINES[engine]()
    names = ", ".join('"' + name.replace('"', '""') + f'" {kind}' for name in columns)
    database.execute(f"CREATE TABLE scores (id INTEGER, {names})")
    rows = [[i, *row] for i, row in enumerate(values)]
    marks = ", ".join("?" * (len(columns) + 1))
    database.executemany(f"INSERT INTO scores VALUES ({marks})", rows)
    return database


def select(database, expressions):
    for expression in expressions:
        assert "--" not in expression  # it would start a comment
        assert not re.search(r"\.\d+(?![\de])", expression)  # it would be a decimal number
    rows = database.execute(f"SELECT {', '.join(expressions)} FROM scores ORDER BY id").fetchall()
    return np.array(rows, dtype=float)  # NULL becomes NaN


@all_engines
@pytest.mark.parametrize(("name", "n_classes"), SQL_CASES)
def test_sql_is_predict_proba(name, n_classes, engine):
    proba, y = problem(n_classes)
    recalibrator = WRITABLE[name].fit(proba, y)
    query = queries(proba)
    columns = ["left", "mid", "right"][-n_classes:]
    database = table_of(engine, query.tolist(), columns)
    found = select(database, export_sql(recalibrator, columns=columns))
    np.testing.assert_allclose(found, recalibrator.predict_proba(query), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", WRITABLE)
def test_sql_is_predict_proba_where_zeros_become_tiny_numbers(name):
    tiny = 6e-16  # of half of it, the one that replaces 0, 1 − (1 − x) differs by a fifth
    p = np.array([0, 1, tiny, 1 - tiny, 0, 1, 0.3, 0.5, 0.7])
    proba = np.column_stack([1 - p, p])
    recalibrator = WRITABLE[name].fit(proba, [0, 1, 1, 0, 1, 0, 0, 1, 1])
    expected = recalibrator.predict_proba(proba)
    database = table_of("SQLite", proba.tolist(), ["a", "b"])
    found = select(database, export_sql(recalibrator, columns=["a", "b"]))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", sorted(set(WRITABLE) - {"scaling-binning"}))
def test_sql_is_predict_proba_where_probabilities_are_tiny(name):
    proba, y = problem(3, 30)
    proba[::2, 0] *= 10.0 ** -np.arange(0, 60, 4)
    proba[::2, 1] += 1 - proba[::2].sum(axis=1)
    recalibrator = WRITABLE[name].fit(proba, y)
    expected = recalibrator.predict_proba(proba)
    database = table_of("SQLite", proba.tolist(), ["a", "b", "c"])
    found = select(database, export_sql(recalibrator, columns=["a", "b", "c"]))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", [*sorted(TOO_LONG), "scaling-binning"])
def test_what_would_be_too_long_is_refused_with_the_remedy(name):
    match = "found .*, whose expressions would be too long. Call export_onnx"
    with pytest.raises(ValueError, match=match):
        export_sql(STATED[name].fit(*problem(3)))


def test_every_family_with_a_formula_has_one():
    without = {type(case).__name__ for case in CASES.values() if not states_map(case)}
    smooth = (
        TemperatureRecalibrator,
        SigmoidRecalibrator,
        BetaRecalibrator,
        QuadraticRecalibrator,
        SplineRecalibrator,
        VectorScalingRecalibrator,
        MatrixScalingRecalibrator,
        DirichletRecalibrator,
        IdentityRecalibrator,
    )
    others = (IsotonicRecalibrator, IntervalBinningRecalibrator, VennAbersRecalibrator)
    assert without.isdisjoint(family.__name__ for family in (*smooth, *others, AutoRecalibrator))
    assert "DecisionRecalibrator" in without


def emulate(dialect):
    """SQLite, which reads brackets and backticks, with the `LOG` of SQL Server."""
    database = sqlite()
    if dialect == "sqlserver":
        database.create_function("log", 1, math.log, deterministic=True)
        database.create_function("ln", 1, lambda _: 1 / 0)
    return database


@pytest.mark.parametrize("dialect", ["sqlserver", "mysql"])
@pytest.mark.parametrize(("name", "n_classes"), SQL_CASES)
def test_dialects_are_predict_proba(name, n_classes, dialect):
    proba, y = problem(n_classes)
    recalibrator = WRITABLE[name].fit(proba, y)
    query = queries(proba)[::5]
    columns = ['ln("x")', "a`b", "right"][-n_classes:]
    aliases = [f"{column} new" for column in columns]
    quote = {
        "sqlserver": lambda name: f"[{name}]",  # SQLite does not read a bracket in brackets
        "mysql": lambda name: "`" + name.replace("`", "``") + "`",
    }[dialect]
    database = emulate(dialect)
    database.execute(f"CREATE TABLE scores ({', '.join(map(quote, columns))})")
    marks = ", ".join("?" * n_classes)
    database.executemany(f"INSERT INTO scores VALUES ({marks})", query.tolist())
    expressions = export_sql(recalibrator, columns=columns, aliases=aliases, dialect=dialect)
    rows = database.execute(f"SELECT {', '.join(expressions)} FROM scores")
    assert [column[0] for column in rows.description] == aliases
    found = np.array(rows.fetchall(), dtype=float)
    np.testing.assert_allclose(found, recalibrator.predict_proba(query), rtol=1e-9, atol=1e-15)


@all_engines
def test_aliases_name_the_results(engine):
    proba, y = problem(2)
    recalibrator = SigmoidRecalibrator().fit(proba, y)
    database = table_of(engine, proba.tolist(), ["left", "mid"])
    expressions = export_sql(recalibrator, columns=["left", "mid"], aliases=True)
    query = f"SELECT calibrated_right FROM (SELECT {', '.join(expressions)} FROM scores) AS results"
    found = np.ravel(database.execute(query).fetchall())
    np.testing.assert_allclose(found, recalibrator.predict_proba(proba)[:, 1], rtol=1e-9)


@pytest.mark.parametrize(
    "aliases", ["right", ["right"], ["a", "a"], ["a", 1], ["a", ""], [["a"], "b"], 3, None]
)
def test_bad_aliases(aliases):
    recalibrator = SigmoidRecalibrator().fit(*problem(2))
    with pytest.raises(ValueError, match="aliases must be True, False, or a list of 2 different"):
        export_sql(recalibrator, aliases=aliases)


def test_brackets_in_names_are_doubled():
    recalibrator = SigmoidRecalibrator().fit(*problem(2))
    (_, expression) = export_sql(recalibrator, columns=['a]"b'], dialect="sqlserver")
    assert expression.startswith('CASE WHEN [a]]"b] BETWEEN')


def test_bad_dialect():
    with pytest.raises(ValueError, match="The 'dialect' parameter of export_sql must be"):
        export_sql(SigmoidRecalibrator().fit(*problem(2)), dialect="oracle")


@all_engines
def test_a_temperature_by_hand(engine):
    # T = 2 makes odds of 9 odds of 3
    recalibrator = TemperatureRecalibrator(prior_weight=0)
    recalibrator.fit([0.9, 0.9, 0.9, 0.1], [1, 1, 0, 0])
    database = table_of(engine, [[0.9]], ["score"])
    expressions = export_sql(recalibrator, columns=["score"])
    np.testing.assert_allclose(select(database, expressions), [[0.25, 0.75]], rtol=1e-14)


@all_engines
def test_a_prior_shift_that_is_not_known_yet(engine):
    # a class without labels had no prevalence in the old population either
    recalibrator = PriorShiftRecalibrator(labels=[0, 1, 2])
    recalibrator.fit([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]], [0, 1])
    query = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    database = table_of(engine, query.tolist(), ["a", "b", "c"])
    found = select(database, export_sql(recalibrator, columns=["a", "b", "c"]))
    np.testing.assert_array_equal(found, query)
    assert "nan" not in "".join(export_sql(recalibrator))


@all_engines
def test_what_predict_proba_refuses_is_null(engine):
    proba, y = problem(2)
    for recalibrator in (SigmoidRecalibrator(), IsotonicRecalibrator(), VennAbersRecalibrator()):
        database = table_of(engine, [[None], [-1e-9], [1.000001], [0.5]], ["p"])
        found = select(database, export_sql(recalibrator.fit(proba, y), columns=["p"]))
        assert np.isnan(found).tolist() == [[True, True]] * 3 + [[False, False]]

    proba, y = problem(3)
    rows = [[None, 0.5, 0.5], [0.5, 0.5, 0.1], [0.2, 0.2, 0.2], [-0.1, 0.6, 0.5], [0.2, 0.3, 0.5]]
    for recalibrator in (SigmoidRecalibrator(), MatrixScalingRecalibrator()):
        database = table_of(engine, rows, ["a", "b", "c"])
        expressions = export_sql(recalibrator.fit(proba, y), columns=["a", "b", "c"])
        assert np.isnan(select(database, expressions)).all(axis=1).tolist() == [True] * 4 + [False]


@all_engines
def test_names_of_columns_cannot_break_out(engine):
    proba, y = problem(3)
    recalibrator = SigmoidRecalibrator().fit(proba, y)
    columns = ['a"; DROP TABLE scores; --', "ln(1)", "é 'x'"]
    database = table_of(engine, proba.tolist(), columns)
    rows = database.execute(
        f"SELECT {', '.join(export_sql(recalibrator, columns=columns))} FROM scores ORDER BY id"
    ).fetchall()
    np.testing.assert_allclose(rows, recalibrator.predict_proba(proba), rtol=1e-9, atol=1e-15)
    assert database.execute("SELECT count(*) FROM scores").fetchone() == (len(proba),)


@pytest.mark.parametrize("kind", ["DECIMAL(4, 2)", "FLOAT", "INTEGER"])
@all_engines
def test_columns_of_any_type_of_number(engine, kind):
    proba, y = problem(3)
    query = np.eye(3) if kind == "INTEGER" else np.array([[0.25, 0.5, 0.25], [1, 0, 0]])
    values = query.astype(int).tolist() if kind == "INTEGER" else query.tolist()
    for recalibrator in (SigmoidRecalibrator(), VennAbersRecalibrator(), IsotonicRecalibrator()):
        database = table_of(engine, values, ["a", "b", "c"], kind)
        found = select(database, export_sql(recalibrator.fit(proba, y), columns=["a", "b", "c"]))
        np.testing.assert_allclose(found, recalibrator.predict_proba(query), rtol=1e-9, atol=1e-15)


@all_engines
def test_rows_of_zeros_keep_their_probabilities(engine):
    # no sample with a probability in one of these bins had that label
    proba = [[0.4, 0.4, 0.2], [0.2, 0.2, 0.6], [0.1, 0.5, 0.4]]
    recalibrator = IntervalBinningRecalibrator("uniform", n_bins=10, pseudo_count=0)
    recalibrator.set_params(labels=[0, 1, 2]).fit(proba, [2, 2, 1])
    database = table_of(engine, [[0.4, 0.2, 0.4]], ["a", "b", "c"])
    found = select(database, export_sql(recalibrator, columns=["a", "b", "c"]))
    np.testing.assert_allclose(found, [[0.4, 0.2, 0.4]], rtol=1e-14)


@all_engines
@pytest.mark.parametrize(
    "recalibrator",
    [
        SigmoidRecalibrator(prior_weight=0),
        SplineRecalibrator(smoothing=0, prior_weight=1e-6),
        VectorScalingRecalibrator(prior_weight=1e-9),
        TemperatureRecalibrator(prior_weight=1e-9),
    ],
    ids=str,
)
def test_steep_maps_are_clipped(engine, recalibrator):
    proba = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    for columns, y in ((3, [0, 0, 1, 2]), (2, [0, 0, 1, 0])):
        X = proba if columns == 3 else np.column_stack([1 - proba[:, 1], proba[:, 1]])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("skcalib.recalibration._prior.warn", lambda *args: None)
            recalibrator.fit(np.tile(X, (2, 1)), np.tile(y, 2))  # 4 hardly tell slopes
        query = queries(X)
        names = list("abc")[:columns]
        database = table_of(engine, query.tolist(), names)
        found = select(database, export_sql(recalibrator, columns=names))
        expected = recalibrator.predict_proba(query)
        assert expected.max() > 1 - 1e-12
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.min(), expected.min(), rtol=1e-9)
        assert found.max() <= expected.max()


def test_exponentials_neither_overflow_nor_vanish():
    # as in PostgreSQL, where either is an error
    def strict_exp(x):
        result = math.exp(x)
        if result == 0:
            raise FloatingPointError
        return result

    proba = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    for recalibrator in (TemperatureRecalibrator(prior_weight=1e-15), SigmoidRecalibrator()):
        recalibrator.fit(proba, [0, 0, 1, 2])
        query = queries(proba)
        database = table_of("SQLite", query.tolist(), list("abc"))
        database.create_function("exp", 1, strict_exp)
        found = select(database, export_sql(recalibrator, columns=list("abc")))
        np.testing.assert_allclose(found, recalibrator.predict_proba(query), rtol=0, atol=1e-9)


def test_knots_without_a_number_between_them():
    recalibrator = IsotonicRecalibrator(strict=False).fit([0, 5e-324, 0.5, 1], [0, 1, 1, 1])
    database = table_of("SQLite", [[0.0], [5e-324], [0.2]], ["p"])
    found = select(database, export_sql(recalibrator, columns=["p"]))
    assert found[:, 1].tolist() == [0, 1, 1]
    assert np.isfinite(export_table(recalibrator)["slope"]).all()


def test_a_table_holds_the_map():
    for name in ("steps", "strict", "uniform", "uniform, pseudo-count", "quantile"):
        for n_classes in (2, 3):
            proba, y = problem(n_classes)
            recalibrator = CASES[name].fit(proba, y)
            table = export_table(recalibrator)
            query = queries(proba)
            mapped = []
            for label in np.unique(table["class"]):
                start, value, slope = (
                    table[key][table["class"] == label] for key in ("start", "value", "slope")
                )
                assert start[0] == 0
                assert (np.diff(start) > 0).all()
                p = query[:, recalibrator.classes_ == label][:, 0]
                row = np.searchsorted(start, p, side="right") - 1
                mapped.append(value[row] + slope[row] * (p - start[row]))
            expected = recalibrator.predict_proba(query)
            if n_classes == 2:
                np.testing.assert_allclose(mapped[0], expected[:, 1], rtol=1e-13, atol=0)
            else:
                shares = np.column_stack(mapped) / np.sum(mapped, axis=0)[:, None]
                np.testing.assert_allclose(shares, expected, rtol=1e-12, atol=0)


def test_a_table_by_hand():
    recalibrator = IsotonicRecalibrator(strict=False).fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    table = export_table(recalibrator)
    assert table["class"].tolist() == [1] * 5
    assert table["start"].tolist() == [0, 0.1, 0.2, 0.3, 0.8]
    np.testing.assert_allclose(table["value"], [0, 0, 0.5, 0.5, 1])
    np.testing.assert_allclose(table["slope"], [0, 5, 0, 1, 0])


def test_auto_has_the_map_of_the_best():
    proba = np.linspace(0, 1, 60)
    auto = AutoRecalibrator([("strict", IsotonicRecalibrator(strict=True))], ensemble=False)
    auto.fit(proba, proba > 0.8)
    assert auto.best_name_ == "strict"
    for export in (export_sql, export_table):
        np.testing.assert_equal(export(auto), export(auto.best_recalibrator_))
    search = GridSearchCV(IsotonicRecalibrator(strict=True), {}, cv=2)
    auto = AutoRecalibrator([("search", search)], ensemble=False).fit(proba, proba > 0.8)
    assert auto.best_name_ == "search"
    with pytest.raises(ValueError, match="a formula can express; found GridSearchCV"):
        export_sql(auto)


def test_columns_by_default():
    pandas = pytest.importorskip("pandas")
    proba, y = problem(2)
    assert '"proba_right"' in export_sql(SigmoidRecalibrator().fit(proba, y))[1]
    frame = pandas.DataFrame(proba, columns=["no", "my score"])
    expressions = export_sql(SigmoidRecalibrator().fit(frame, y))
    assert '"my score"' in expressions[1]
    assert '"no"' not in expressions[0]


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ("score", "columns must be a list of 3 different names.*found 'score'"),
        (
            ["a", "b"],
            r"columns must be a list.*classes \['left', 'mid', 'right'\]; found 2 name\(s\)",
        ),
        (["a", "b", "b"], "columns must be a list of 3 different names"),
        ([1, 2, 3], "columns must be a list of 3 different names"),
        (["a", "b", ""], "columns must be a list of 3 different names"),
    ],
)
def test_bad_columns(columns, match):
    recalibrator = SigmoidRecalibrator().fit(*problem(3))
    with pytest.raises(ValueError, match=match):
        export_sql(recalibrator, columns=columns)


@pytest.mark.parametrize("export", [export_sql, export_table])
def test_what_has_no_formula(export):
    proba, y = problem(2)
    with pytest.raises(ValueError, match=r"recalibrator must .*found DecisionRecalibrator\."):
        export(DecisionRecalibrator().fit(proba, y))
    with pytest.raises(NotFittedError):
        export(IsotonicRecalibrator())
    with pytest.raises(TypeError, match=r"found the class IsotonicRecalibrator\. Pass the obj"):
        export(IsotonicRecalibrator)
    model = RecalibratedClassifier(LogisticRegression(), IsotonicRecalibrator(), cv=2)
    with pytest.raises(ValueError, match="averages 2 classifiers"):
        export(model.fit(proba, y))
    export(model.set_params(ensemble=False).fit(proba, y))
    pipeline = make_pipeline(PredictProba(LogisticRegression(), cv=2), IsotonicRecalibrator())
    with pytest.raises(TypeError, match=r"found Pipeline\. .*the last step of a pipeline"):
        export(pipeline.fit(proba, y))
    export(pipeline[-1])


class ThresholdRecalibrator(OneVsRestRecalibrator):
    """Whether a class has at least its share, as somebody else may write it."""

    def __init__(self, *, labels=None):
        self.labels = labels

    def _fit_binary(self, predictions):
        return predictions.weight @ predictions.label

    def _map_binary(self, proba, params):
        return (proba >= params).astype(float)


class HalfIsotonicRecalibrator(IsotonicRecalibrator):
    """A map that its base class, which has a formula and a table, does not have."""

    def _map_binary(self, proba, params):
        return super()._map_binary(proba, params) / 2


class SteepSigmoidRecalibrator(SigmoidRecalibrator):
    def _map_binary(self, columns, curve):
        return super()._map_binary(columns, curve) ** 2


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("export", [export_sql, export_table])
@pytest.mark.parametrize(
    "subclass", [ThresholdRecalibrator, HalfIsotonicRecalibrator, SteepSigmoidRecalibrator]
)
def test_the_map_of_a_subclass_is_refused_by_name(subclass, export, n_classes):
    recalibrator = subclass().fit(*problem(n_classes))
    remedy = "Call its predict_proba" if export is export_sql else "Use export_sql"
    with pytest.raises(ValueError, match=rf"must .*found {subclass.__name__}\. {remedy}"):
        export(recalibrator)


@pytest.mark.parametrize(
    "outer",
    [
        AutoRecalibrator([("own", SteepSigmoidRecalibrator())]),
        PairwiseScalingRecalibrator(SteepSigmoidRecalibrator()),
        ScalingBinningRecalibrator(SteepSigmoidRecalibrator()),
        RecalibratorChain(IsotonicRecalibrator(), SteepSigmoidRecalibrator()),
    ],
    ids=lambda outer: type(outer).__name__,
)
def test_the_map_of_a_subclass_is_refused_within_another_one(outer):
    with pytest.raises(ValueError, match="formula can express; found SteepSigmoidRecalibrator"):
        export_sql(outer.fit(*problem(3)))


def test_a_subclass_with_the_same_map_has_its_formula_and_table():
    class StepRecalibrator(IsotonicRecalibrator):
        def __init__(self, *, labels=None):
            super().__init__(strict=False, labels=labels)

    own, base = (
        recalibrator.fit(*problem(3))
        for recalibrator in (StepRecalibrator(), IsotonicRecalibrator(strict=False))
    )
    assert export_sql(own) == export_sql(base)
    np.testing.assert_equal(export_table(own), export_table(base))


def test_a_map_of_forecasts_has_no_formula():
    identity = IdentityRecalibrator().fit((np.zeros(3), np.ones(3)), [0.1, 0.2, 0.3])
    with pytest.raises(TypeError, match="a fitted recalibrator of class probabilities; found Iden"):
        export_sql(identity)


def test_a_smooth_map_has_no_table():
    with pytest.raises(ValueError, match=r"an interval map.*found SigmoidRecalibrator\. Use"):
        export_table(SigmoidRecalibrator().fit(*problem(2)))


def test_logits_are_refused():
    recalibrator = TemperatureRecalibrator(input_type="logits").fit([-1.0, 2.0, 3.0], [0, 1, 0])
    with pytest.raises(ValueError, match=r"found input_type='logits'\. Fit it on scipy"):
        export_sql(recalibrator)


def test_a_recalibrated_classifier_is_written_down_if_it_is_one_map():
    X, y = load_breast_cancer(return_X_y=True)
    model = RecalibratedClassifier(GaussianNB(), SigmoidRecalibrator(), ensemble=False).fit(X, y)
    scores = model.estimators_[0].predict_proba(X)
    database = table_of("SQLite", scores.tolist(), ["proba_0", "proba_1"])
    actual = select(database, export_sql(model))
    np.testing.assert_allclose(actual, model.predict_proba(X), rtol=1e-9, atol=1e-15)
    with pytest.raises(ValueError, match=r"averages 5 classifiers, .* Fit it with ensemble=False"):
        export_sql(model.set_params(ensemble=True).fit(X, y))
    of_scores = RecalibratedClassifier(
        RidgeClassifier(), SigmoidRecalibrator(), response_method="decision_function"
    )
    with pytest.raises(ValueError, match=r"response_method='decision_function'.*expit\(score / "):
        export_sql(of_scores.set_params(ensemble=False).fit(X, y))
