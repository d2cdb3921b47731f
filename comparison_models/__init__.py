"""The models that the Taylorformer is compared with.

Neural processes (NP, ANP, TNP), under the contract of `taylorformer.model.probabilistic_model`, and
the exact Gaussian process.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
