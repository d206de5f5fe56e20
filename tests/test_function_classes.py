"""The function classes contain what they should, intersect, and refuse bad parameters."""

import copy
import pickle

import cvxpy
import numpy as np
import pytest
from sklearn.exceptions import EfficiencyWarning
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from skcalib.function_classes import (
    Bounded,
    FunctionClass,
    Lipschitz,
    Monotone,
    RKHSBall,
    Sign,
    TotalVariation,
)
from skcalib.metrics import weighted_calibration_error

POINTS = np.array([0.1, 0.3, 0.7])
TRIPLES = np.array([[0.1, 0.2, 0.7], [0.4, 0.2, 0.4], [0.6, 0.3, 0.1]])

CASES = {
    "Lipschitz(constant=2.0)": Lipschitz(2.0),
    "Bounded(bound=1.0)": Bounded(),
    "Sign(positive=False)": Sign(positive=False),
    "Monotone(increasing=True)": Monotone(),
    "TotalVariation(bound=2, zero_outside='both')": TotalVariation(2, "both"),
    "RKHSBall(kernel='rbf', bandwidth='median', radius=1.0)": RKHSBall("rbf", "median"),
    "RKHSBall(kernel=RBF(length_scale=0.5), bandwidth=1.0, radius=1.0)": RKHSBall(RBF(0.5)),
    "Lipschitz(constant=1.0) & Bounded(bound=1.0)": Lipschitz() & Bounded(),
}


def contains(function_class, points, function):
    """Whether a function with these values is in the class."""
    values = cvxpy.Constant(function)
    problem = cvxpy.Problem(cvxpy.Minimize(0), function_class.constraints(points, values))
    problem.solve(solver="CLARABEL")
    return problem.status == "optimal"


def kernel_norm(gram, function):
    return np.sqrt(function @ np.linalg.solve(gram, function))


GRAM = np.exp(-np.abs(POINTS[:, None] - POINTS) / 0.5)
WAVE = np.array([1.0, -1.0, 0.5])
STEEP = np.array([0.0, 0.2, -0.2])  # steps of 0.2 over 0.2 and of −0.4 over 0.4


@pytest.mark.parametrize(
    ("function_class", "points", "inside", "outside"),
    [
        (Lipschitz(1.0), POINTS, 0.999 * STEEP, 1.001 * STEEP),
        (Lipschitz(3.0), POINTS, 2.999 * STEEP + 100, 3.001 * STEEP),
        (Lipschitz(0.0), POINTS, np.full(3, 7.0), [7.0, 7.0, 7.001]),
        (Lipschitz(1.0), TRIPLES, 0.999 * TRIPLES, 1.001 * TRIPLES),
        (Bounded(0.5), POINTS, [0.499, -0.499, 0], [0.501, 0, 0]),
        (Bounded(0.5), TRIPLES, 0.499 * np.eye(3), -0.501 * np.eye(3)),
        (Sign(), POINTS, [0.001, 0, 5], [0.001, -0.001, 5]),
        (Sign(positive=False), POINTS, [-0.001, 0, -5], [-0.001, 0.001, 5]),
        (Monotone(), POINTS, [-5, 1, 1], [-5, 1.001, 1]),
        (Monotone(increasing=False), POINTS, [5, 1, 1], [5, 1, 1.001]),
        # components of columns (0.1, 0.4, 0.6), (0.2, 0.2, 0.3) and (0.7, 0.4, 0.1)
        (Monotone(), TRIPLES, [[1, 1, 3], [2, 1, 2], [3, 2, 1]], [[1, 0, 3], [2, 1, 2], [3, 2, 1]]),
        (Monotone(), TRIPLES, np.zeros((3, 3)), [[1, 1, 1], [2, 1, 2], [3, 2, 3]]),
        (TotalVariation(3.5), POINTS, 0.999 * WAVE + 8, 1.001 * WAVE),
        (TotalVariation(4.5, "left"), POINTS, 0.999 * WAVE, 1.001 * WAVE),
        (TotalVariation(4.0, "right"), POINTS, 0.999 * WAVE, 1.001 * WAVE),
        (TotalVariation(5.0, "both"), POINTS, 0.999 * WAVE, 1.001 * WAVE),
        (
            RKHSBall(bandwidth=0.5, radius=kernel_norm(GRAM, WAVE)),
            POINTS,
            0.999 * WAVE,
            1.001 * WAVE,
        ),
    ],
    ids=repr,
)
def test_what_the_classes_contain(function_class, points, inside, outside):
    assert contains(function_class, points, np.array(inside))
    assert not contains(function_class, points, np.array(outside))


def test_an_intersection_contains_what_all_of_its_classes_contain():
    for classes in (Lipschitz() & Bounded(0.1) & Sign(), Lipschitz() & (Bounded(0.1) & Sign())):
        assert contains(classes, POINTS, np.array([0.09, 0.09, 0.0]))
        assert not contains(classes, POINTS, np.array([0.11, 0.11, 0.11]))
        assert not contains(classes, POINTS, np.array([-0.01, 0, 0]))
        assert not contains(Lipschitz(0.1) & classes, POINTS, np.array([0.09, 0.09, 0.0]))


@pytest.mark.parametrize("kernel", ["laplacian", "exponential", "total-variation", "rbf"])
def test_distances_on_a_line(kernel):
    # all are |s − t|, and so is that of a scikit-learn kernel
    distance = np.abs(POINTS[:, None] - POINTS) / 0.3
    expected = np.exp(-(distance**2) / 2 if kernel == "rbf" else -distance)
    gram = RKHSBall(kernel, bandwidth=0.3)._gram(POINTS)
    np.testing.assert_allclose(gram, expected, atol=1e-15)
    np.testing.assert_allclose(RKHSBall(RBF(0.3))._gram(POINTS), np.exp(-(distance**2) / 2))


def test_median_bandwidth():
    by_median = RKHSBall("laplacian", "median")
    np.testing.assert_allclose(by_median._gram(POINTS), RKHSBall(bandwidth=0.4)._gram(POINTS))
    # the distances of the rows are 0.6, 0.6 and 1.2 in L1
    np.testing.assert_allclose(by_median._gram(TRIPLES), RKHSBall(bandwidth=0.6)._gram(TRIPLES))


@pytest.mark.parametrize("expected", CASES)
def test_repr(expected):
    assert repr(CASES[expected]) == expected


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_classes_are_values(case):
    for duplicate in (pickle.loads(pickle.dumps(case)), copy.deepcopy(case)):
        assert duplicate == case
        assert repr(duplicate) == repr(case)
    assert sum(other == case for other in CASES.values()) == 1
    name = next(iter(vars(case)))
    with pytest.raises(AttributeError, match="cannot assign"):
        setattr(case, name, 3.0)


def test_objects_with_constraints_can_be_intersected():
    class Even:
        def constraints(self, points, values):
            return [values[0] == values[-1]]

    for classes in (Even() & Bounded(), Bounded() & Even()):
        assert contains(classes, POINTS, np.array([0.5, 0, 0.5]))
        assert not contains(classes, POINTS, np.array([0.5, 0, 0.6]))
        assert not contains(classes, POINTS, np.array([1.5, 0, 1.5]))
    for wrong in (1.0, None, "Bounded"):
        with pytest.raises(TypeError, match="unsupported operand"):
            Bounded() & wrong
        with pytest.raises(TypeError, match="unsupported operand"):
            wrong & Bounded()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lipschitz(-1), "'constant' parameter of Lipschitz.* range .* Got -1"),
        (lambda: Lipschitz(np.nan), "'constant' parameter of Lipschitz.* Got nan"),
        (lambda: Lipschitz("1"), "'constant' parameter of Lipschitz.* Got '1'"),
        (lambda: Bounded(np.inf), "'bound' parameter of Bounded.* Got inf"),
        (lambda: Sign("up"), "'positive' parameter of Sign"),
        (lambda: Monotone(1.5), "'increasing' parameter of Monotone"),
        (lambda: TotalVariation(-2), "'bound' parameter of TotalVariation"),
        (lambda: TotalVariation(zero_outside="top"), "'zero_outside' .*'both'.* Got 'top'"),
        (
            lambda: RKHSBall("gaussian"),
            "'kernel' parameter of RKHSBall.* a callable. Got 'gaussian'",
        ),
        (lambda: RKHSBall(bandwidth=0), "'bandwidth' parameter of RKHSBall.* Got 0"),
        (lambda: RKHSBall(bandwidth="mean"), "'bandwidth' .*'median'.* Got 'mean'"),
        (lambda: RKHSBall(radius=-1), "'radius' parameter of RKHSBall"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_base_class_has_no_constraints():
    with pytest.raises(NotImplementedError):
        FunctionClass().constraints(POINTS, cvxpy.Variable(3))


def test_white_noise_is_refused():
    with pytest.raises(ValueError, match="Leave the WhiteKernel out"):
        RKHSBall(RBF(0.3) + WhiteKernel())._gram(POINTS)


def test_long_programs_are_expected(monkeypatch):
    monkeypatch.setattr("skcalib.function_classes._SECONDS_OF_A_TRIPLE", 1e3)
    with pytest.warns(EfficiencyWarning, match=r"RKHSBall\(\) at 2 .* 2\.2 hours\. Call"):
        weighted_calibration_error([0, 1], [0.2, 0.3], function_class=RKHSBall())
