"""The weights of candidates in an average, from the losses of samples they were not fitted on."""

import numpy as np

# Draws of the Bayesian bootstrap.
_DRAWS = 200

# The log-odds of doing nothing against any other candidate, before the losses are seen.
_LOG_ODDS_OF_NOTHING = 3.0

# The likelihood is taken to this power: its root makes the weights less extreme.
_EXPONENT = 0.5

# Candidates below this weight are left out.
_SMALLEST_WEIGHT = 0.01


def weights_in_average(loss: np.ndarray, weight: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The share of each candidate (c,), of losses (c, n) of samples with weights that sum to 1.

    The mean of softmax(−n/2 · loss) over Bayesian bootstraps (Rubin 1981), where n is the effective
    number of samples; the first candidate, which does nothing, is favoured. `order` lists the
    samples by what is known of them, so that it does not matter how they come.
    """
    generator = np.random.default_rng(0)
    size = 1 / float(weight @ weight)
    drawn = np.empty(len(weight))
    total = np.zeros(len(loss))
    for _ in range(_DRAWS):
        drawn[order] = generator.exponential(size=len(weight))
        drawn *= weight
        score = -_EXPONENT * size * (loss @ (drawn / drawn.sum()))
        score[0] += _LOG_ODDS_OF_NOTHING
        share = np.exp(score - score.max())
        total += share / share.sum()
    total /= _DRAWS
    total[total < _SMALLEST_WEIGHT] = 0.0
    return total / total.sum()
