"""The predictions of fourteen networks for CIFAR-10, as two benchmarks read them."""

import numpy as np

CLASSES = list(range(10))


def read_networks(folder):
    """The labels of the 10,000 test images, and the probabilities of each network."""
    with np.load(folder / "cifar10_probs.npz") as stored:
        label = stored["labels"].astype(int)
        networks = {name: stored[name].astype(float) for name in stored if name != "labels"}
    # rows of a softmax in single precision sum to 1 within 4e-7 only
    return label, {name: p / p.sum(axis=1, keepdims=True) for name, p in networks.items()}


def log_loss(label, proba):
    return -np.mean(np.log(np.maximum(proba[np.arange(len(label)), label], 2e-16)))


def brier_score(label, proba):
    return np.mean(np.sum((np.eye(proba.shape[1])[label] - proba) ** 2, axis=1))


def print_table(title, header, rows):
    print(f"\n## {title}\n")
    print("|", " | ".join(header), "|\n|" + "---|" * len(header))
    for row in rows:
        print("|", " | ".join(row), "|", flush=True)


def mean_and_error(values, digits=2):
    """The mean and its standard error."""
    values = np.asarray(values)
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"
