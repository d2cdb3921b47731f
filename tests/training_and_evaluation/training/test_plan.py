"""Training plans: checks, epochs and what they make."""

import dataclasses

import numpy as np
import pytest

from taylorformer.training_and_evaluation.training.plan import TrainingPlan

PLAN = TrainingPlan(4, 1e-3, "constant", max_steps=4, steps_per_epoch=2)


def test_the_last_epoch_is_shorter_where_steps_do_not_divide():
    assert (PLAN.num_epochs, PLAN.epoch_steps, PLAN.total_steps) == (2, 2, 4)
    longer = dataclasses.replace(PLAN, max_steps=5)
    assert (longer.num_epochs, longer.epoch_steps, longer.total_steps) == (3, 2, 5)
    assert longer.epochs_after(0) == [(2, 2), (1, 1)]
    short = dataclasses.replace(PLAN, max_steps=1)
    assert (short.num_epochs, short.epoch_steps, short.total_steps) == (1, 1, 1)
    assert PLAN.epochs_after(0) == [(2, 2)] and PLAN.epochs_after(4) == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("total", [1, 2, 6, 7, 60])
def test_epochs_end_at_multiples_and_at_the_last_step(size, total):
    plan = dataclasses.replace(PLAN, max_steps=total, steps_per_epoch=size)
    borders = {*range(0, total, plan.epoch_steps), total}
    for step in range(total + 1):
        at = step
        for num_epochs, epoch_steps in plan.epochs_after(step):
            for _ in range(num_epochs):
                at += epoch_steps
                assert at in borders
        assert at == total


def test_a_plan_is_kept_as_it_was_checked():
    plan = TrainingPlan(np.int64(4), 1, "constant", np.int64(4), 2)
    assert type(plan.batch_size) is type(plan.max_steps) is int
    assert type(plan.learning_rate) is float


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0}, "`learning_rate` must be .*above 0"),
        ({"schedule": "linear"}, "`schedule` must be one of 'constant', 'cosine'"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"max_steps": 0}, "`max_steps` must be at least 1"),
        ({"steps_per_epoch": 0}, "`steps_per_epoch` must be at least 1"),
        ({"patience": 0}, "`patience` must be at least 1"),
        ({"average": 1.0}, "`average` must be .*below 1"),
    ],
)
def test_bad_plans(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(PLAN, **changes)


def test_the_optimizer_follows_the_schedule_and_clips():
    assert not PLAN.length_matters
    assert float(PLAN.make_optimizer().learning_rate) == pytest.approx(1e-3)
    plan = dataclasses.replace(PLAN, schedule="cosine", max_steps=9)
    assert float(plan.make_schedule()(9)) == pytest.approx(0, abs=1e-9)
    assert plan.length_matters
    optimizer = plan.make_optimizer()
    rate = optimizer._learning_rate
    assert float(rate(0)) == pytest.approx(1e-3)
    assert float(rate(10)) == pytest.approx(0, abs=1e-9)
    assert optimizer.global_clipnorm == 10.0


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_a_warm_up_rises_to_the_learning_rate(schedule):
    plan = dataclasses.replace(PLAN, schedule=schedule, max_steps=100, warm_up_steps=20)
    rate = plan.make_schedule()
    rates = [float(rate(step)) for step in range(101)]
    assert rates[0] == pytest.approx(1e-5, rel=1e-3)
    assert rates[20] == pytest.approx(1e-3, rel=1e-3)
    assert np.all(np.diff(rates[:21]) > 0)
    assert rates[100] == pytest.approx(0.0 if schedule == "cosine" else 1e-3, abs=1e-9)
    assert np.all(np.diff(rates[20:]) < 1e-12)


def test_the_optimizer_of_a_longer_plan():
    plan = dataclasses.replace(
        PLAN, weight_decay=1e-3, beta_2=0.98, clip_norm=1.0, record_norms=True
    )
    optimizer = plan.make_optimizer()
    assert type(optimizer).__name__ == "NormAdamW"
    assert (optimizer.weight_decay, optimizer.beta_2, optimizer.global_clipnorm) == (1e-3, 0.98, 1)
    plain = dataclasses.replace(plan, record_norms=False).make_optimizer()
    assert type(plain).__name__ == "AdamW"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"warm_up_steps": -1}, "`warm_up_steps`"),
        ({"warm_up_steps": 4}, "`warm_up_steps`"),
        ({"weight_decay": -1e-3}, "`weight_decay`"),
        ({"beta_2": 1.0}, "`beta_2`"),
        ({"clip_norm": 0.0}, "`clip_norm`"),
    ],
)
def test_bad_longer_plans(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(PLAN, **changes)
