"""The models that the Taylorformer is compared with.

The place of the neural processes (NP, ANP, TNP), of Autoformer and Informer, and of the exact
Gaussian process, all under the contract of `taylorformer.model.probabilistic_model`.
"""
