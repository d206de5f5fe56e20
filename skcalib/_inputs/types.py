"""Names for what users may pass, in annotations."""

import numpy as np

# A class.
Label = bool | int | float | str | bytes

# A seed or a generator, as scikit-learn takes it.
RandomState = int | np.random.RandomState | None
