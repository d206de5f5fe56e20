"""The maps of recalibrators as operations of ONNX in double precision, registered for a node."""

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from ..._inputs.arrays import import_package
from ..._inputs.probabilities import ROW_SUM_ATOL
from ..._numerics.logits import EPSILON
from .. import _maps as maps

# Operator set 18 and file version 8 are those of ONNX 1.13; older runtimes cannot read the model.
_OPERATIONS_VERSION, _FILE_VERSION = 18, 8

_ROWS, _FLOAT64, _INT64 = np.array([1]), 11, 7  # the last two are types of ONNX


class Graph:
    """Operations on named arrays; their methods are those of ONNX, and return a name.

    Numbers and arrays of NumPy become constants.
    """

    def __init__(self, onnx: Any, least: float) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.least = least  # the least probability that one column can tell from 0

    def __getattr__(self, operation: str) -> Callable[..., str]:
        def add(*inputs: Any, **attributes: Any) -> str:
            names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
            name = f"v{len(self.nodes)}"
            self.nodes.append(self._onnx.helper.make_node(operation, names, [name], **attributes))
            return name

        return add

    def _constant(self, values: Any) -> str:
        array = np.asarray(values)
        if array.dtype.kind != "i":
            array = array.astype(np.float64)
        name = f"c{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def column(self, proba: str, k: int) -> str:
        return self.Gather(proba, np.array([k]), axis=1)

    def log(self, proba: str, smallest: float) -> str:
        return self.Log(self.Clip(proba, smallest, 1 - smallest))

    def clip(self, proba: str) -> str:
        return self.Clip(proba, EPSILON, 1 - EPSILON)

    def shares(self, values: str, otherwise: Any) -> str:
        """Rows divided by their sums; `otherwise` where a sum is 0."""
        total = self.ReduceSum(values, _ROWS, keepdims=1)
        return self.Where(self.Equal(total, 0.0), otherwise, self.Div(values, total))

    def pieces(self, x: str, starts: np.ndarray, *tables: np.ndarray) -> list[str]:
        """For each table, the entry of the last start that x (n, 1) reaches, (n, 1)."""
        is_reached = self.Cast(self.GreaterOrEqual(x, starts[None]), to=_INT64)
        index = self.ReduceSum(is_reached, _ROWS, keepdims=0)
        return [self.Unsqueeze(self.Gather(table, index), _ROWS) for table in tables]

    def each_class(self, proba: str, mapped: Sequence[str]) -> str:
        """Rows (n, K) of the mapped probability of each class, or of the last of two."""
        if len(mapped) == 1:
            return self.Concat(self.Sub(1.0, mapped[0]), mapped[0], axis=1)
        return self.shares(self.Concat(*mapped, axis=1), self.shares(proba, proba))


def make_graph(stated: maps.Map, n_classes: int, reads_both_columns: bool) -> Any:
    """The model of ONNX from probabilities (n, K) to calibrated ones, NaN where one is invalid."""
    onnx = import_package("onnx", "export_onnx", '"skcalib[onnx]"')
    has_one_column = n_classes == 2 and not reads_both_columns
    graph = Graph(onnx, EPSILON if has_one_column else 0.0)
    proba = "proba"
    gap = graph.Abs(graph.Sub(graph.ReduceSum(proba, _ROWS), 1.0))
    is_valid = graph.And(
        graph.And(
            graph.GreaterOrEqual(graph.ReduceMin(proba, _ROWS), 0.0),
            graph.LessOrEqual(graph.ReduceMax(proba, _ROWS), 1.0),
        ),
        graph.LessOrEqual(gap, ROW_SUM_ATOL),
    )
    if has_one_column:
        last = graph.column(proba, 1)
        proba = graph.Concat(graph.Sub(1.0, last), last, axis=1)
    graph.Where(is_valid, write_graph(stated, graph, proba), np.nan)
    graph.nodes[-1].output[0] = "calibrated"
    tensors = [
        onnx.helper.make_tensor_value_info(name, _FLOAT64, ["n", n_classes])
        for name in ("proba", "calibrated")
    ]
    body = onnx.helper.make_graph(graph.nodes, "map", tensors[:1], tensors[1:], graph.constants)
    operations = [onnx.helper.make_opsetid("", _OPERATIONS_VERSION)]
    return onnx.helper.make_model(body, opset_imports=operations, ir_version=_FILE_VERSION)


@singledispatch
def write_graph(stated: maps.Map, graph: Graph, proba: str) -> str:
    """The name of calibrated probabilities (n, K); registered for every node."""
    raise maps.NoMapError(stated.source, "Call its predict_proba.")


@write_graph.register
def _(stated: maps.ClassFactors, graph: Graph, proba: str) -> str:
    if (stated.factors == 1).all():
        return proba
    return graph.shares(graph.Mul(proba, stated.factors), stated.otherwise)


@write_graph.register
def _(stated: maps.LogLinear, graph: Graph, proba: str) -> str:
    logs = graph.log(proba, max(stated.smallest, graph.least))
    if stated.bounds is not None:
        low, high = stated.bounds
        logs = graph.Concat(graph.Min(graph.Max(logs, low), high), logs, axis=1)
    scores = graph.Add(graph.MatMul(logs, stated.matrix.T), stated.shifts)
    return graph.clip(graph.Softmax(scores, axis=1))


@write_graph.register
def _(stated: maps.LogOdds, graph: Graph, proba: str) -> str:
    if len(stated.curves) == 1 and not graph.least:
        first, last = (graph.log(graph.column(proba, k), stated.smallest) for k in range(2))
        log_odds = [graph.Sub(last, first)]
    else:
        skipped, smallest = int(len(stated.curves) == 1), max(stated.smallest, EPSILON)
        columns = [graph.column(proba, k + skipped) for k in range(len(stated.curves))]
        clipped = [graph.Clip(column, smallest, 1 - smallest) for column in columns]
        log_odds = [graph.Log(graph.Div(p, graph.Sub(1.0, p))) for p in clipped]
    pairs = zip(stated.curves, log_odds, strict=True)
    return graph.each_class(proba, [_write_curve(curve, graph, x) for curve, x in pairs])


def _write_curve(curve: maps.Curve, graph: Graph, x: str) -> str:
    """Calibrated probabilities of predicted log-odds, both (n, 1)."""
    origin, *powers = graph.pieces(x, curve.knots, curve.origins, *curve.coefficients.T)
    distance, value = graph.Sub(x, origin), powers[-1]
    for power in powers[-2::-1]:
        value = graph.Add(power, graph.Mul(distance, value))
    for factor, side in ((-curve.a, graph.Neg(x)), (curve.b, x)):
        if factor:  # log(sigmoid(x)) itself would lose digits for small x
            value = graph.Add(value, graph.Mul(graph.Log(graph.Add(1.0, graph.Exp(side))), factor))
    return graph.clip(graph.Sigmoid(value))


@write_graph.register
def _(stated: maps.PerClass, graph: Graph, proba: str) -> str:
    if stated.both is not None:
        shares = graph.shares(proba, proba)
        columns = [graph.column(shares, k) for k in range(2)]
        first, last = (
            _write_pieces(pieces, graph, column)
            for pieces, column in zip(stated.both, columns, strict=True)
        )
        is_likely = graph.Greater(columns[1], columns[0])
        return graph.each_class(proba, [graph.Where(is_likely, graph.Sub(1.0, first), last)])
    skipped = 1 if len(stated.pieces) == 1 else 0  # the first of two classes
    mapped = [
        _write_pieces(pieces, graph, graph.column(proba, k))
        for k, pieces in enumerate(stated.pieces, skipped)
    ]
    return graph.each_class(proba, mapped)


def _write_pieces(pieces: maps.Pieces, graph: Graph, column: str) -> str:
    start, value, slope = graph.pieces(column, pieces.start[1:], *pieces)
    return graph.Add(value, graph.Mul(slope, graph.Sub(column, start)))


@write_graph.register
def _(stated: maps.WeightedMean, graph: Graph, proba: str) -> str:
    mean = graph.Add(graph.Mul(proba, 0.0), stated.uniform / stated.n_classes)
    for member, weight in zip(stated.members, stated.weights, strict=True):
        mean = graph.Add(mean, graph.Mul(write_graph(member, graph, proba), weight))
    return mean


@write_graph.register
def _(stated: maps.Composition, graph: Graph, proba: str) -> str:
    return write_graph(stated.second, graph, write_graph(stated.first, graph, proba))


@write_graph.register
def _(stated: maps.Pairs, graph: Graph, proba: str) -> str:
    n_classes = len(stated.shifts)
    logs = graph.log(proba, max(stated.smallest, graph.least))
    centre = np.eye(n_classes) - 1 / n_classes
    relative = graph.MatMul(graph.Max(logs, np.log(stated.floor)), centre)
    first, second = (graph.Gather(relative, k, axis=1) for k in np.triu_indices(n_classes))
    products = graph.MatMul(graph.Mul(first, second), stated.coef)
    return graph.clip(graph.Softmax(graph.Add(graph.Add(logs, products), stated.shifts), axis=1))
