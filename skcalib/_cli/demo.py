"""Ordinary classifiers on the data that come with scikit-learn, before and after recalibration."""

from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from ..display._reliability import ReliabilityDisplay
from ..recalibration import RecalibratedClassifier
from ..report._report import calibration_report


def run():
    """Yields for each problem a title, and labels, probabilities and report before and after."""
    for data_name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        data = load()
        X_train, X_test, y_train, y_test = train_test_split(
            data.data,
            data.target_names[data.target],
            test_size=0.5,
            stratify=data.target,
            random_state=0,
        )
        for classifier in (GaussianNB(), RandomForestClassifier(random_state=0)):
            title = f"{type(classifier).__name__} on {data_name}"
            models = {
                "before": classifier,
                "after": RecalibratedClassifier(classifier),
            }
            outcome = {}
            for stage, model in models.items():
                proba = model.fit(X_train, y_train).predict_proba(X_test)
                numbers = calibration_report(y_test, proba, random_state=0, output_dict=True)
                outcome[stage] = (y_test, proba, numbers)
            yield title, outcome


def draw(results, path):
    """Reliability diagrams, one column for each problem, before recalibration above after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(results), 8), layout="constrained")
    axes = figure.subplots(2, len(results), squeeze=False)
    for column, (title, outcome) in zip(axes.T, results, strict=True):
        for ax, (stage, (y_true, y_proba, _)) in zip(column, outcome.items(), strict=True):
            ReliabilityDisplay.from_predictions(y_true, y_proba, random_state=0, ax=ax)
            ax.set_title(f"{title}\n{stage} recalibration")
    figure.savefig(path, dpi=100)
