"""RecalibratedRegressor on real data, beside other packages.

Each data set is split at random into halves, one to fit and recalibrate, one to measure. Every
method gets the same regressor and the same five folds. Run in an environment with the other
packages:

    pip install . statsmodels uncertainty-toolbox mapie netcal
    python docs/benchmarks/forecast_recalibration.py [--quick] [n_repeats] [table.csv]
"""

import sys
import time
import warnings
from itertools import islice

import numpy as np
import pandas as pd
import uncertainty_toolbox as uct
from mapie.regression import CrossConformalRegressor
from scipy.stats import norm
from sklearn import datasets
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import (
    BaggingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from statsmodels import datasets as statsmodels_datasets

from skcalib.forecasts import (
    EnsembleForecast,
    GaussianForecast,
    QuantileForecast,
    ResidualForecast,
    get_forecast,
)
from skcalib.metrics import quantile_calibration_error
from skcalib.recalibration import (
    LocationScaleRecalibrator,
    PITRecalibrator,
    QuantileRecalibrator,
    RecalibratedRegressor,
)

try:
    from netcal.regression import VarianceScaling
except ImportError:  # it needs PyTorch and GPyTorch
    VarianceScaling = None

warnings.simplefilter("ignore")

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
KERNEL = ConstantKernel() * RBF(length_scale=3.0) + WhiteKernel()


class QuantileForest(RandomForestRegressor):
    """A forest that forecasts the outcomes in the leaves that a sample falls into."""

    def fit(self, X, y):
        super().fit(X, y)
        self.outcomes_, self.leaves_ = y, self.apply(X)
        return self

    def predict_forecast(self, X):
        shared = self.apply(X)[:, None] == self.leaves_  # (n, n_train, trees)
        weight = (shared / shared.sum(axis=1, keepdims=True)).mean(axis=2)
        return EnsembleForecast(np.broadcast_to(self.outcomes_, weight.shape), weight)


class BaggedMembers(BaggingRegressor):
    """An ensemble that forecasts what its members predict."""

    def predict_forecast(self, X):
        return EnsembleForecast(np.column_stack([one.predict(X) for one in self.estimators_]))


class QuantileBoosting(RegressorMixin, BaseEstimator):
    """One boosting for each level."""

    def fit(self, X, y):
        self.estimators_ = [
            HistGradientBoostingRegressor(
                loss="quantile", quantile=level, max_iter=40, random_state=0
            ).fit(X, y)
            for level in LEVELS
        ]
        return self

    def predict_forecast(self, X):
        columns = np.column_stack([one.predict(X) for one in self.estimators_])
        return QuantileForecast(np.sort(columns, axis=1), LEVELS)

    def predict(self, X):
        return self.predict_forecast(X).ppf(0.5)


class OutOfFoldResiduals(RegressorMixin, BaseEstimator):
    """A regressor that predicts a number, plus the residuals that it leaves on other folds."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        self.residuals_ = y - cross_val_predict(self.estimator, X, y, cv=KFold(5))
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def predict_forecast(self, X):
        return ResidualForecast(self.estimator_.predict(X), self.residuals_)

    def predict(self, X):
        return self.predict_forecast(X).mean()


REGRESSORS = {
    "Gaussian process": make_pipeline(
        StandardScaler(), GaussianProcessRegressor(KERNEL, normalize_y=True)
    ),
    "Bayesian ridge": make_pipeline(StandardScaler(), BayesianRidge()),
    "forest": QuantileForest(100, min_samples_leaf=5, random_state=0),
    "quantile boosting": QuantileBoosting(),
    "bagging": BaggedMembers(n_estimators=20, random_state=0),
    "support vectors": make_pipeline(StandardScaler(), SVR(C=10.0)),
}
MOST_SAMPLES = 400


def problems():
    """Features and outcomes; those of large data sets are a random part."""
    yield "diabetes", *datasets.load_diabetes(return_X_y=True)
    wine = datasets.load_wine().data
    yield "wine: proline", wine[:, :-1], wine[:, -1]
    cancer = datasets.load_breast_cancer().data
    yield "cancer: worst symmetry", np.delete(cancer, [8, 18, 28], axis=1), cancer[:, 28]
    images = datasets.load_digits().data
    yield "digits: pixel", np.delete(images, 28, axis=1), images[:, 28]
    for name, target, dropped in (
        ("engel", "foodexp", []),
        ("star98", "NABOVE", ["NBELOW"]),
        ("anes96", "logpopul", ["popul"]),
        ("randhie", "mdvis", []),
    ):
        table = getattr(statsmodels_datasets, name).load_pandas().data.astype(float)
        features = table.drop(columns=[target, *dropped])
        yield f"{name}: {target}", features.to_numpy(), table[target].to_numpy()


def fold_forecasts(regressor, X, y):
    """Means, standard deviations and outcomes of the five folds."""
    mean, std = np.empty(len(y)), np.empty(len(y))
    for train, test in KFold(5).split(X):
        forecast = get_forecast(clone(regressor).fit(X[train], y[train]), X[test])
        mean[test], std[test] = forecast.mean(), forecast.std()
    return mean, std, y


def plain(regressor, X, y, X_test):
    return get_forecast(clone(regressor).fit(X, y), X_test)


def recalibrated(recalibrator):
    def method(regressor, X, y, X_test):
        model = RecalibratedRegressor(regressor, recalibrator, cv=KFold(5))
        return model.fit(X, y).predict_forecast(X_test)

    return method


def conformal(regressor, X, y, X_test):
    """The conformal recalibrator that fits the kind of the forecasts."""
    if isinstance(regressor, QuantileForest | BaggedMembers | OutOfFoldResiduals):
        return recalibrated(QuantileRecalibrator(levels=LEVELS))(regressor, X, y, X_test)
    is_grid = isinstance(regressor, QuantileBoosting)
    chosen = QuantileRecalibrator() if is_grid else PITRecalibrator()
    return recalibrated(chosen)(regressor, X, y, X_test)


def toolbox_scale(regressor, X, y, X_test):
    """The factor of the standard deviation with the least mean absolute calibration error."""
    mean, std, seen = fold_forecasts(regressor, X, y)
    recalibrate = uct.recalibration.get_std_recalibrator(mean, std, seen)
    forecast = plain(regressor, X, y, X_test)
    return GaussianForecast(forecast.mean(), recalibrate(forecast.std()))


def toolbox_isotonic(regressor, X, y, X_test):
    """Its isotonic map of levels, as 99 quantiles."""
    mean, std, seen = fold_forecasts(regressor, X, y)
    expected, observed = uct.get_proportion_lists_vectorized(mean, std, seen, prop_type="quantile")
    model = uct.recalibration.iso_recal(expected, observed)
    grid = np.linspace(0.0005, 0.9995, 1999)
    cdf = np.maximum.accumulate(np.clip(model.predict(grid), 0, 1)) + 1e-12 * np.arange(len(grid))
    level = np.interp((np.arange(99) + 0.5) / 99, cdf, grid)
    forecast = plain(regressor, X, y, X_test)
    members = forecast.mean()[:, None] + forecast.std()[:, None] * norm.ppf(level)
    return EnsembleForecast(members, np.ones(99))


def netcal_scale(regressor, X, y, X_test):
    mean, std, seen = fold_forecasts(regressor, X, y)
    forecast = plain(regressor, X, y, X_test)
    model = VarianceScaling().fit((mean, std), seen)
    scaled = np.asarray(model.transform((forecast.mean(), forecast.std()))).ravel()
    return GaussianForecast(forecast.mean(), scaled)


def mapie_interval(regressor, X, y, X_test):
    """The interval of 90 % by CV+; there is no distribution."""
    model = CrossConformalRegressor(regressor, confidence_level=0.9, cv=KFold(5))
    interval = model.fit_conformalize(X, y).predict_interval(X_test)[1]
    return interval[:, 0, 0], interval[:, 1, 0]


METHODS = {
    "none": plain,
    "skcalib default": recalibrated(None),
    "skcalib location, scale": recalibrated(LocationScaleRecalibrator()),
    "skcalib conformal": conformal,
    "toolbox scale": toolbox_scale,
    "toolbox isotonic": toolbox_isotonic,
    **({"netcal scale": netcal_scale} if VarianceScaling else {}),
    "MAPIE CV+": mapie_interval,
}


def scores(forecast, y, is_grid):
    """Those of intervals only where a grid of quantiles has taken the place of members."""
    low, high = forecast if isinstance(forecast, tuple) else forecast.interval(0.9)
    if isinstance(forecast, tuple) or isinstance(forecast, QuantileForecast) != is_grid:
        return np.nan, np.nan, np.nan, np.mean((y >= low) & (y <= high)), np.mean(high - low)
    try:
        log_loss = -forecast.logpdf(y).mean() if forecast.is_continuous else np.nan
    except ValueError:  # conformal: no density
        log_loss = np.nan
    error = quantile_calibration_error(y, forecast)
    inside = np.mean((y >= low) & (y <= high))
    return forecast.crps(y).mean(), log_loss, error, inside, np.mean(high - low)


def measure(n_repeats, n_problems=None):
    """Rows: problem, regressor, repeat, method, scores in units of the outcome's deviation."""
    for problem, X, y in islice(problems(), n_problems):
        y = (y - y.mean()) / y.std()
        for repeat in range(n_repeats):
            rows = np.random.default_rng(repeat).permutation(len(y))[:MOST_SAMPLES]
            train, test = train_test_split(rows, test_size=0.5, random_state=repeat)
            for name, regressor in REGRESSORS.items():
                is_plain = name == "support vectors"  # it only predicts a number
                forecaster = OutOfFoldResiduals(regressor) if is_plain else regressor
                for method, fitted in METHODS.items():
                    ours = method.startswith("skcalib") and method != "skcalib conformal"
                    given = regressor if ours or method == "MAPIE CV+" else forecaster
                    start = time.perf_counter()
                    try:
                        forecast = fitted(given, X[train], y[train], X[test])
                        values = scores(forecast, y[test], name == "quantile boosting")
                    except Exception as error:  # most need a standard deviation
                        if not method.startswith(("toolbox", "netcal")):
                            print(problem, name, method, repr(error)[:200], file=sys.stderr)
                        continue
                    yield problem, name, repeat, method, *values, time.perf_counter() - start
        print(problem, "done", file=sys.stderr, flush=True)


MEASURES = ["CRPS", "NLL", "QCE", "coverage", "width"]
COLUMNS = ["problem", "regressor", "repeat", "method", *MEASURES, "seconds"]


def against_nothing(rows, method, name):
    """Mean change in each case, its standard error over repeats, and their ratio."""
    chosen = rows[rows.method.isin([method, "none"])]
    values = chosen.pivot_table(name, ["problem", "regressor", "repeat"], "method").dropna()
    if method not in values:
        return None
    cells = (values[method] - values["none"]).groupby(["problem", "regressor"])
    change, error = cells.mean(), cells.sem().replace(0, np.inf)
    return pd.DataFrame({"change": change, "error": error, "ratio": change / error})


def main(n_repeats=4, path=None, quick=False):
    measured = measure(2, n_problems=1) if quick else measure(n_repeats)
    rows = pd.DataFrame(measured, columns=COLUMNS)
    if path is not None:
        rows.to_csv(path, index=False)
    for name, part in rows.groupby("regressor"):
        table = part.groupby("method")[[*MEASURES, "seconds"]].mean()
        table = table.reindex([method for method in METHODS if method in table.index])
        print(f"\n## {name}\n\n{table.to_markdown(floatfmt='.3f')}")
    default = rows[rows.method.isin(["none", "skcalib default"])]
    table = default.pivot_table(MEASURES, ["problem", "regressor"], "method")[MEASURES]
    table.columns = [f"{a}{' after' * (b != 'none')}" for a, b in table.columns]
    text = table.reset_index().to_markdown(floatfmt=".3f", index=False)
    print(f"\n## Before and after\n\n{text}")
    print("\n## Worst and best changes, in standard errors over repeats\n")
    for method in METHODS:
        for name in ("CRPS", "NLL", "QCE"):
            result = None if method == "none" else against_nothing(rows, method, name)
            if result is not None:
                ratio = result["ratio"]
                print(
                    f"{method}, {name}: {len(ratio)} cases, {(ratio > 2).sum()} worse and "
                    f"{(ratio < -2).sum()} better by 2 standard errors, worst {ratio.max():.2f} "
                    f"({' / '.join(ratio.idxmax())}), mean change {result['change'].mean():.4f}"
                )


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--quick"]
    main(*map(int, arguments[:1]), *arguments[1:2], quick="--quick" in sys.argv)
