"""Recipes of training: the learning rate and what goes with it, for a kind of tasks and a model.

A recipe fills in settings that are not set otherwise; a record has the settings themselves. What
was tried before one was chosen is in `docs/experiments.md`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from taylorformer.data_wrangler.checks import check_choice


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How models are trained on one kind of tasks.

    Example:
        >>> recipe = Recipe("quick", "short", {"learning_rate": 1e-3}, warm_up_share=0.1)
        >>> recipe.settings("tnp", iterations=2000)
        {'learning_rate': 0.001, 'warm_up': 200}

    Attributes:
        name: of the recipe, also on the command line.
        note: what it is, for lists.
        training: settings of training, those of `ExperimentSettings`, by name.
        by_preset: settings that replace them, by the preset of the model.
        warm_up_share: the part of all iterations in which the learning rate rises.
        kinds: the kinds of tasks that it is for; empty: all.
    """

    name: str
    note: str
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    by_preset: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    warm_up_share: float = 0.0
    kinds: tuple[str, ...] = ()

    def settings(self, preset: str, iterations: int) -> dict[str, Any]:
        """Returns the settings of training for a model.

        Args:
            preset: the name of its preset.
            iterations: training steps.
        """
        values = {**self.training, **self.by_preset.get(preset, {})}
        if self.warm_up_share:
            values["warm_up"] = round(self.warm_up_share * iterations)
        return values


PAPER = "paper"
"""The recipe that changes nothing: what the paper does, and where it is silent, Keras."""

# The peaks that were chosen for each of the two.
_PEAKS = {"taylorformer": {"learning_rate": 2e-3}, "tnp": {"learning_rate": 5e-4}}
_MUON_PEAKS = {"taylorformer": {"learning_rate": 8e-3}, "tnp": {"learning_rate": 4e-3}}
_ALL = (
    Recipe(PAPER, "that of the paper: a constant learning rate, no warm-up"),
    Recipe(
        "tuned",
        "for short trainings: a warm-up, a higher peak, cosine, gradients clipped at 1",
        {"learning_rate": 1e-3, "schedule": "cosine", "beta_2": 0.98, "clip_norm": 1.0},
        _PEAKS,
        warm_up_share=0.1,
        kinds=("gaussian_process",),
    ),
    Recipe(
        "muon",
        "the optimizer Muon, which needs far fewer iterations than Adam: a warm-up, cosine",
        {"learning_rate": 4e-3, "schedule": "cosine", "optimizer": "muon"},
        _MUON_PEAKS,
        warm_up_share=0.1,
        kinds=("gaussian_process",),
    ),
)

RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _ALL}
"""The recipes, by the names of the command line."""


def find_recipe(name: str, kind: str) -> Recipe:
    """Looks a recipe up by its name.

    Args:
        name: of the recipe.
        kind: of the task that it is to be used for.

    Raises:
        ValueError: an unknown name, or a recipe for other kinds of tasks.
    """
    recipe = RECIPES[check_choice("recipe", name, tuple(RECIPES))]
    if recipe.kinds and kind not in recipe.kinds:
        able = [one.name for one in RECIPES.values() if not one.kinds or kind in one.kinds]
        raise ValueError(
            f"`recipe` must be one of {', '.join(able)} for tasks of the kind {kind}. "
            f"Received: {name}"
        )
    return recipe
