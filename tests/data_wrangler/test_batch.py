"""A batch is checked, cast and masked, and all of that once."""

import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler import batch as batch_module
from taylorformer.data_wrangler.batch import as_prepared, prepare_batch


@pytest.fixture
def masked_names(monkeypatch):
    """The shapes of all tensors to which a mask is applied."""
    shapes = []
    original = batch_module.zero_where_masked

    def counted(values, mask):
        shapes.append(values.shape.as_list())
        return original(values, mask)

    monkeypatch.setattr(batch_module, "zero_where_masked", counted)
    return shapes


def _inputs():
    x = np.arange(12.0).reshape(2, 3, 2)
    mask = np.array([[True, True, False], [False, True, True]])
    y = np.where(mask[..., np.newaxis], x[..., :1], np.nan)
    return {
        "x_context": x,
        "y_context": y,
        "x_target": x[:, :2] + 1,
        "y_target": y[:, :2],
        "context_mask": mask,
        "target_mask": mask[:, :2],
    }


def test_what_was_prepared_is_handed_on(masked_names):
    batch = prepare_batch(_inputs())
    assert len(masked_names) == 4
    again = prepare_batch(dict(batch))
    assert len(masked_names) == 4
    assert all(again[name] is batch[name] for name in batch)
    np.testing.assert_array_equal(batch["y_context"][0, :, 0], [0.0, 2.0, 0.0])


def test_what_has_changed_is_masked_again(masked_names):
    batch = prepare_batch(_inputs())
    shifted = prepare_batch({**batch, "x_context": batch["x_context"] + 1.0})
    assert masked_names[4:] == [[2, 3, 2]]
    np.testing.assert_array_equal(shifted["x_context"][0, 2], [0.0, 0.0])
    np.testing.assert_array_equal(shifted["x_context"][0, 1], [3.0, 4.0])


def test_another_mask_masks_again(masked_names):
    batch = prepare_batch(_inputs())
    less = prepare_batch({**batch, "target_mask": batch["target_mask"] & [[False, True]]})
    assert masked_names[4:] == [[2, 2, 2], [2, 2, 1]]
    np.testing.assert_array_equal(less["x_target"][0, 0], [0.0, 0.0])
    # Without its mask a target takes part, whatever was applied to it before.
    del batch["target_mask"]
    assert np.all(prepare_batch(batch)["target_mask"])
    assert len(masked_names) == 8


def test_within_a_graph_and_from_outside_of_it(masked_names):
    inputs = _inputs()
    outside = prepare_batch(inputs)
    before = len(masked_names)

    @tf.function(autograph=False)
    def prepared(batch):
        # Arguments of a graph, and what it captures, are new tensors, of which nothing is known.
        once, captured = prepare_batch(batch), prepare_batch(outside)
        return prepare_batch(once), prepare_batch(captured)

    for batch in prepared(outside):
        for name, values in outside.items():
            np.testing.assert_array_equal(batch[name], values)
    assert len(masked_names) == before + 8


def test_a_rearranged_batch_is_marked(masked_names):
    batch = prepare_batch(_inputs())
    backwards = {name: values[::-1] for name, values in batch.items()}
    prepare_batch(as_prepared(dict(backwards)))
    assert len(masked_names) == 4


def test_shapes_are_checked_also_of_what_was_prepared():
    batch, other = prepare_batch(_inputs()), prepare_batch(_inputs())
    batch["x_target"] = tf.repeat(other["x_target"], 2, axis=0)
    with pytest.raises(ValueError, match="`x_target` must have the shape"):
        prepare_batch(batch)
