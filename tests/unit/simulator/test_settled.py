from controller.desk import spec
from muster.lifecycle.predict import Predictor
from muster.model.history import Ended
from muster.model.job import Job
from muster.model.levels import PLAIN_LEVELS
from muster.model.value import HOUR, Instant, JobId
from muster.simulator.settled import SettledLevels, SettledPredictions

JOB = Job(id=JobId(1), spec=spec(), submitted_at=Instant(0))
OVER = Ended(job=JOB, started_at=Instant(0), ended_at=Instant(5 * HOUR))


def test_newcomers_are_expected_to_take_what_the_live_world_learned() -> None:
    predictor = Predictor()
    for number in range(20):
        predictor.learn(JobId(number), JOB.spec, HOUR)
    settled = SettledPredictions(predictor, {})

    first = settled.predicted(JOB).expected
    settled.learn(OVER)

    assert first == predictor.predict(JOB.spec).expected
    assert settled.predicted(JOB).expected == first
    assert predictor.accuracy.count == 0


def test_levels_stay_as_they_are() -> None:
    settled = SettledLevels(PLAIN_LEVELS)
    settled.learn(OVER)

    assert settled.levels({}, {}, Instant(0)) is PLAIN_LEVELS
