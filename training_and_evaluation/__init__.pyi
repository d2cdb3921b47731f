from .training_step import TrainingStep

__all__ = ["TrainingStep"]
