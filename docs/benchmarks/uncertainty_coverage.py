"""How often confidence intervals cover the truth, and how often comparisons raise false alarms.

pip install . && python docs/benchmarks/uncertainty_coverage.py
"""

import sys
import time

import numpy as np
from joblib import Parallel, delayed
from scipy import special
from scipy.optimize import brentq
from sklearn import config_context

from skcalib import metrics
from skcalib.datasets import make_temperature_family
from skcalib.uncertainty import compare
from skcalib.uncertainty._resampling import Estimates, hull

LEVELS = (0.90, 0.95)
N_REPETITIONS = {100: 300, 1000: 300, 10_000: 100}
N_COMPARISONS = {100: 200, 1000: 200}
N_RESAMPLES = 79  # so that tails of 0.05 and 0.025 are met exactly
METRICS = {
    "smooth": ("smooth_calibration_error", {}),
    "binned (15)": ("expected_calibration_error", {}),
    "cumulative": ("cumulative_calibration_error", {}),
    "Laplace kernel": ("laplace_kernel_calibration_error", {}),
    "unbiased SKCE": ("squared_kernel_calibration_error", {"bandwidth": 0.3}),
}
SLOW_METRICS = {
    "smooth ECE (smECE)": ("smooth_expected_calibration_error", {}),
    "interval": ("interval_calibration_error", {}),
}


def predictions(truth, beta):
    return special.expit(beta * special.logit(truth))


def population_value(metric, params, beta, n_points=20_000):
    """The metric of the whole temperature family: every point of a fine grid, with both labels."""
    truth = (np.arange(n_points) + 0.5) / n_points
    if metric == "squared_kernel_calibration_error":
        params = params | {"estimator": "biased"}
    return getattr(metrics, metric)(
        np.repeat([0, 1], n_points),
        np.tile(predictions(truth, beta), 2),
        sample_weight=np.concatenate([1 - truth, truth]),
        **params,
    )


def interval_ends(metric, params, n, beta, seed):
    """The estimate, and the ends for each level: as `confidence_interval`, from one resampling."""
    y_true, y_proba = make_temperature_family(n, inverse_temperature=beta, random_state=seed)
    with config_context(skip_parameter_validation=True):
        estimate = Estimates(metric, y_true, {"y_proba": y_proba}, None, [0, 1], None, params)
        values = [v[..., 0] for v in estimate.resample(N_RESAMPLES, seed, n_jobs=None)]
    ends = [hull(*values, estimate.shrinkage, level) for level in LEVELS]
    return values[0], *np.maximum(ends, 0).ravel()


def two_models(scene, n, params, seed):
    """Labels, and predictions of two models; `params` is the pair of inverse temperatures."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    y_true = (rng.random(n) < truth).astype(int)
    if scene == "calibrated, sharp and coarse":
        return y_true, truth, (np.floor(4 * truth) + 0.5) / 4
    if scene == "independent noise":
        a, b = special.expit(special.logit(truth) + rng.normal(size=(2, n)))
        return y_true, a, b
    return y_true, *(predictions(truth, beta) for beta in params)


def p_value(metric, params, scene, n, betas, seed):
    y_true, a, b = two_models(scene, n, betas, seed)
    with config_context(skip_parameter_validation=True):
        return compare(
            metric,
            y_true,
            a,
            b,
            labels=[0, 1],
            metric_params=params,
            n_resamples=N_RESAMPLES,
            random_state=seed,
        ).p_value


def print_coverage(parallel, chosen, sizes, betas):
    print("| metric | n | β | true value | mean estimate | covered at 0.90 | 0.95 | ", end="")
    print("missed below, above at 0.95 | median interval at 0.95 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for title, (metric, params) in chosen.items():
        for beta in betas:
            # calibrated: the grid would leave a little of its own
            value = 0.0 if beta == 1 else population_value(metric, params, beta)
            for n in sizes:
                ends = np.array(
                    parallel(
                        delayed(interval_ends)(metric, params, n, beta, seed)
                        for seed in range(sizes[n])
                    )
                )
                low, high = ends[:, 1::2], ends[:, 2::2]
                covered = np.mean((low <= value) & (value <= high), axis=0)
                print(
                    f"| {title} | {n} | {beta} | {value:.4f} | {ends[:, 0].mean():.4f} | "
                    f"{covered[0]:.3f} | {covered[1]:.3f} | {np.mean(low[:, 1] > value):.3f}, "
                    f"{np.mean(high[:, 1] < value):.3f} | {np.median(low[:, 1]):.4f} to "
                    f"{np.median(high[:, 1]):.4f} |",
                    flush=True,
                )


def print_comparisons(parallel, sizes):
    print("| metric | models | n | p ≤ 0.05 |")
    print("|---|---|---|---|")
    for title in ("smooth", "binned (15)"):
        metric, params = METRICS[title]

        def excess(beta, metric=metric, params=params):
            return population_value(metric, params, beta) - population_value(metric, params, 0.5)

        equal = (0.5, brentq(excess, 1.01, 4, xtol=1e-4))
        for scene, betas in (
            ("calibrated, sharp and coarse", None),
            ("independent noise", None),
            (f"equal errors, β = 0.5 and {equal[1]:.2f}", equal),
            ("different, β = 2 and 1", (2, 1)),
        ):
            for n, n_repetitions in sizes.items():
                p = parallel(
                    delayed(p_value)(metric, params, scene, n, betas, seed)
                    for seed in range(n_repetitions)
                )
                print(
                    f"| {title} | {scene} | {n} | {np.mean(np.array(p) <= 0.05):.3f} |", flush=True
                )


def main(quick=False):
    few = {100: 4} if quick else None
    start = time.perf_counter()
    parallel = Parallel(n_jobs=2)
    print_comparisons(parallel, few or N_COMPARISONS)
    print()
    betas = (1,) if quick else (1, 2, 0.5)
    print_coverage(parallel, METRICS, few or N_REPETITIONS, betas)
    print()
    print_coverage(parallel, SLOW_METRICS, few or {100: 60, 1000: 60}, betas[:2])
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
