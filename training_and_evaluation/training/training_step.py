"""The compiled training step of a model, for people who write a training loop."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.batch import check_finite, prepare_batch
from taylorformer.model.probabilistic_model import ProbabilisticModel, default_optimizer


class TrainingStep:
    """One step that maximises the mean log-likelihood per observed target, as a `tf.function`.

    It is the step of `ProbabilisticModel.fit`. One graph serves every B, N_C and N_T.

    Example:
        >>> import numpy as np
        >>> from taylorformer import NeuralProcess
        >>> step = TrainingStep(NeuralProcess(width=4, latent_dim=2, num_latents=2, seed=0))
        >>> x = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4, 1)
        >>> inputs = {"x_context": x[:, :3], "y_context": x[:, :3], "x_target": x[:, 3:]}
        >>> sorted(step(inputs, x[:, 3:]))
        ['nll', 'teacher_forced_mse']

    Args:
        model: the model to train. The first batch builds it if nothing has before.
        optimizer: a Keras optimizer. None: Adam with learning rate 3e-4 and `global_clipnorm=10`.
        jit_compile: whether XLA compiles the step, which it does anew for each shape: worth it for
            many steps of one shape, see `ProbabilisticModel.compile`.
    """

    def __init__(
        self,
        model: ProbabilisticModel,
        optimizer: keras.optimizers.Optimizer | None = None,
        jit_compile: bool = False,
    ) -> None:
        if not isinstance(model, ProbabilisticModel):
            raise TypeError(
                f"`model` must be a ProbabilisticModel. Received: {type(model).__name__}"
            )
        if optimizer is None:
            optimizer = default_optimizer()
        scales = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        if model.dtype_policy.name == "mixed_float16" and not scales:
            # As `compile` does: small gradients would be 0 in float16.
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        self.model = model
        self.optimizer = optimizer
        self.jit_compile = jit_compile
        self.num_traces = 0
        self._function: Any = None

    def __call__(self, inputs: Mapping[str, Any], y_target: Any) -> dict[str, tf.Tensor]:
        """Changes the weights once.

        Args:
            inputs: a batch of the data contract.
            y_target: `[B, N_T, D_y]`.

        Returns:
            `nll` and `teacher_forced_mse`, running averages since `reset` was last called.
        """
        check_finite(inputs, y_target)
        batch = prepare_batch({**inputs, "y_target": y_target})
        if self._function is None:
            self.model.build_for_training(
                {key: value for key, value in batch.items() if key != "y_target"}, self.optimizer
            )
            signature = {
                key: tf.TensorSpec([None, None, *tensor.shape[2:]], tensor.dtype)
                for key, tensor in batch.items()
            }
            self._function = tf.function(
                self._step,
                input_signature=[signature],
                jit_compile=self.jit_compile,
                autograph=False,
            )
        return self._function(batch)

    def reset(self) -> None:
        """Starts new running averages."""
        for metric in (self.model.nll_tracker, self.model.mse_tracker):
            metric.reset_state()

    def _step(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        self.num_traces += 1
        batch = dict(batch)
        y_target = batch.pop("y_target")
        averages = self.model.gradient_step(self.optimizer, batch, y_target)
        return {name: averages[name] for name in ("nll", "teacher_forced_mse")}
