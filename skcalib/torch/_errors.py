"""Calibration errors of classes that are biased, as modules."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

from torch import Tensor

from .._inputs.scikit_learn import constraints_of
from ..losses import (
    kde_calibration_loss,
    maximum_mean_calibration_loss,
    smooth_calibration_loss,
    soft_binned_calibration_loss,
)
from ._base import Penalty
from ._checks import class_batch


class _ClassPenalty(Penalty):
    """A function of :mod:`skcalib.losses` and its options."""

    _function: Callable[..., Tensor]

    def __init__(self, *, input_type: str, ignore_index: int, **options: Any) -> None:
        constraints = constraints_of(self._function) | {"ignore_index": [Integral]}
        super().__init__(constraints, input_type=input_type, ignore_index=ignore_index, **options)
        self._names = ("input_type", *options)

    def _error(self, prediction, target, given, sample_weight):
        if given is not None:
            raise ValueError(
                f"given must be None for {type(self).__name__}, which is conditioned on the "
                "prediction; found a tensor. Take DistributionMatchingLoss."
            )
        prediction, batch = class_batch(
            prediction,
            target,
            None,
            sample_weight,
            input_type=self.input_type,
            ignore_index=self.ignore_index,
        )
        options = {name: getattr(self, name) for name in self._names}
        return self._function(
            prediction, batch.target, sample_weight=batch.sample_weight, **options
        )


class SmoothCalibrationLoss(_ClassPenalty):
    """Smooth expected calibration error of a batch.

    It is biased: that of a calibrated model is positive, and larger in smaller batches.

    Parameters
    ----------
    bandwidth : float, default=0.1
        Standard deviation of the Gaussian kernel, on the scale of the probabilities; at least 1e-5.

    multi_class : {"confidence", "classwise"}, default="confidence"
        For more than two classes, the binary problems that are measured: the probability of the
        predicted class and whether it was right, or the mean over each class against the rest.

    input_type : {"logits", "probabilities"}, default="logits"
        What predictions hold.

    ignore_index : int, default=-100
        Samples with this target are left out.

    See Also
    --------
    skcalib.losses.smooth_calibration_loss : The function, with its formula.

    Notes
    -----
    Call it with predictions and targets. Bad values, such as NaN or labels out of range, raise
    errors. Half precision is computed in single precision.

    Examples
    --------
    >>> import torch
    >>> from skcalib.torch import SmoothCalibrationLoss
    >>> logits = torch.tensor([2.0, 2.0, -2.0, -2.0], requires_grad=True)
    >>> loss = SmoothCalibrationLoss()(logits, torch.tensor([1, 0, 0, 1]))
    >>> loss.backward()
    >>> round(loss.item(), 2)
    0.38
    """

    _function = staticmethod(smooth_calibration_loss)

    def __init__(
        self,
        bandwidth: float = 0.1,
        *,
        multi_class: str = "confidence",
        input_type: str = "logits",
        ignore_index: int = -100,
    ) -> None:
        super().__init__(
            bandwidth=bandwidth,
            multi_class=multi_class,
            input_type=input_type,
            ignore_index=ignore_index,
        )


class MMCELoss(_ClassPenalty):
    """Maximum mean calibration error (MMCE) of a batch.

    It is biased: that of a calibrated model is positive, and larger in smaller batches.
    ``DistributionMatchingLoss("top-label", given_kernel="total-variation")`` is twice its square,
    without bias.

    Parameters
    ----------
    bandwidth : float, default=0.4
        The ν of the kernel :math:`e^{-|c - c'| / \\nu}` of the confidences c.

    multi_class : {"confidence", "classwise"}, default="confidence"
        For more than two classes, the binary problems that are measured: the probability of the
        predicted class and whether it was right, or the mean over each class against the rest.

    input_type : {"logits", "probabilities"}, default="logits"
        What predictions hold.

    ignore_index : int, default=-100
        Samples with this target are left out.

    See Also
    --------
    skcalib.losses.maximum_mean_calibration_loss : The function, with its formula.

    Notes
    -----
    Call it with predictions and targets. Bad values, such as NaN or labels out of range, raise
    errors. Half precision is computed in single precision.

    Examples
    --------
    >>> import torch
    >>> from skcalib.torch import MMCELoss
    >>> logits = torch.tensor([2.0, 2.0], requires_grad=True)
    >>> loss = MMCELoss()(logits, torch.tensor([1, 0]))
    >>> round(loss.item(), 4)  # 1/(1 + e⁻²) − 1/2
    0.3808
    """

    _function = staticmethod(maximum_mean_calibration_loss)

    def __init__(
        self,
        bandwidth: float = 0.4,
        *,
        multi_class: str = "confidence",
        input_type: str = "logits",
        ignore_index: int = -100,
    ) -> None:
        super().__init__(
            bandwidth=bandwidth,
            multi_class=multi_class,
            input_type=input_type,
            ignore_index=ignore_index,
        )


class KDECalibrationLoss(_ClassPenalty):
    """Canonical calibration error of a batch by kernel density estimates (ECE-KDE).

    It is biased.

    Parameters
    ----------
    bandwidth : float, default=0.1
        The h of the kernels, Dirichlet distributions with parameters p/h + 1.

    order : float, default=1.0
        The power q of the residuals; at least 1.

    input_type : {"logits", "probabilities"}, default="logits"
        What predictions hold.

    ignore_index : int, default=-100
        Samples with this target are left out.

    See Also
    --------
    skcalib.losses.kde_calibration_loss : The function, with its formula.

    Notes
    -----
    Call it with predictions and targets. Bad values, such as NaN or labels out of range, raise
    errors. Half precision is computed in single precision.

    Examples
    --------
    >>> import torch
    >>> from skcalib.torch import KDECalibrationLoss
    >>> logits = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)
    >>> loss = KDECalibrationLoss()(logits, torch.tensor([1, 0, 1]))
    >>> loss.item() > 0
    True
    """

    _function = staticmethod(kde_calibration_loss)

    def __init__(
        self,
        bandwidth: float = 0.1,
        *,
        order: float = 1.0,
        input_type: str = "logits",
        ignore_index: int = -100,
    ) -> None:
        super().__init__(
            bandwidth=bandwidth, order=order, input_type=input_type, ignore_index=ignore_index
        )


class SoftBinnedCalibrationLoss(_ClassPenalty):
    """Calibration error of a batch with bins of soft membership.

    It is biased, as are all binned errors.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins of equal width.

    temperature : float, default=0.01
        T; the smaller, the harder the bins.

    multi_class : {"confidence", "classwise"}, default="confidence"
        For more than two classes, the binary problems that are measured: the probability of the
        predicted class and whether it was right, or the mean over each class against the rest.

    input_type : {"logits", "probabilities"}, default="logits"
        What predictions hold.

    ignore_index : int, default=-100
        Samples with this target are left out.

    See Also
    --------
    skcalib.losses.soft_binned_calibration_loss : The function, with its formula.

    Notes
    -----
    Call it with predictions and targets. Bad values, such as NaN or labels out of range, raise
    errors. Half precision is computed in single precision.

    Examples
    --------
    >>> import torch
    >>> from skcalib.torch import SoftBinnedCalibrationLoss
    >>> logits = torch.tensor([2.0, 2.0], requires_grad=True)
    >>> loss = SoftBinnedCalibrationLoss()(logits, torch.tensor([1, 0]))
    >>> round(loss.item(), 4)  # 1/(1 + e⁻²) − 1/2
    0.3808
    """

    _function = staticmethod(soft_binned_calibration_loss)

    def __init__(
        self,
        n_bins: int = 15,
        *,
        temperature: float = 0.01,
        multi_class: str = "confidence",
        input_type: str = "logits",
        ignore_index: int = -100,
    ) -> None:
        super().__init__(
            n_bins=n_bins,
            temperature=temperature,
            multi_class=multi_class,
            input_type=input_type,
            ignore_index=ignore_index,
        )
