"""Recalibrators of other packages, each at its defaults, as functions of arrays.

A function takes probabilities (n, K) and labels 0, ..., K - 1 to fit, and new probabilities, and
returns the new ones recalibrated.
"""

import contextlib
import io
import warnings
from functools import partial

import numpy as np
from recalibrator_defaults import of_scikit_learn

warnings.simplefilter("ignore")
import betacal  # noqa: E402
import cir_model  # noqa: E402, F401  (probmetrics imports it where it is needed)
import lightgbm  # noqa: E402, F401  (as above)
import netcal.binning  # noqa: E402
import netcal.scaling  # noqa: E402
import numba  # noqa: E402, F401  (as above)
import probcal  # noqa: E402
import splinecalib  # noqa: E402
import venn_abers  # noqa: E402
from probmetrics.calibrators import LightGBMCalibrator, get_calibrator  # noqa: E402


def two_columns(positive):
    return np.column_stack([1 - positive, positive])


def of_probcal(name, proba, y, new):
    calibrator = getattr(probcal, name)().fit(proba[:, 1], y)
    positive = calibrator.predict_proba(new[:, 1])
    return positive if positive.ndim == 2 else two_columns(positive)


def of_splinecalib(proba, y, new):
    calibrator = splinecalib.SplineCalib()
    calibrator.fit(proba[:, 1], y)
    return two_columns(calibrator.calibrate(new[:, 1]))


def of_betacal(proba, y, new):
    return two_columns(betacal.BetaCalibration("abm").fit(proba[:, 1], y).predict(new[:, 1]))


def of_venn_abers(proba, y, new):
    calibrator = venn_abers.VennAbersCalibrator()
    return calibrator.predict_proba(p_cal=proba, y_cal=y, p_test=new)


def of_netcal(calibrator, proba, y, new):
    calibrator = calibrator()
    columns = 1 if proba.shape[1] == 2 else slice(None)
    calibrator.fit(proba[:, columns], y)
    result = np.asarray(calibrator.transform(new[:, columns]))
    return two_columns(result) if columns == 1 else result


def of_probmetrics(name, proba, y, new):
    with contextlib.redirect_stdout(io.StringIO()):
        return get_calibrator(name).fit(proba, y).predict_proba(new)


def of_boosting(proba, y, new):
    return LightGBMCalibrator().fit(proba, y).predict_proba(new)


TWO_CLASSES = {
    **{
        f"probcal {name}": partial(of_probcal, f"{name}Calibrator")
        for name in (
            "Platt",
            "Temperature",
            "Beta",
            "Isotonic",
            "CenteredIsotonic",
            "Spline",
            "VennAbers",
        )
    },
    "splinecalib": of_splinecalib,
    "betacal": of_betacal,
    **{
        f"probmetrics {name}": partial(of_probmetrics, name)
        for name in ("affine-scaling", "quadratic-scaling", "beta")
    },
}

ANY_CLASSES = {
    **{
        f"scikit-learn {method}": partial(of_scikit_learn, method)
        for method in ("sigmoid", "isotonic", "temperature")
    },
    "venn-abers": of_venn_abers,
    **{
        f"netcal {name}": partial(of_netcal, getattr(module, name))
        for module, name in (
            (netcal.scaling, "TemperatureScaling"),
            (netcal.scaling, "LogisticCalibration"),
            (netcal.scaling, "BetaCalibration"),
            (netcal.binning, "IsotonicRegression"),
            (netcal.binning, "BBQ"),
        )
    },
    **{
        f"probmetrics {name}": partial(of_probmetrics, name)
        for name in ("temp-scaling", "ts-mix", "svs", "sms", "logistic", "cir", "ivap")
    },
    "probmetrics LightGBM": of_boosting,
}
