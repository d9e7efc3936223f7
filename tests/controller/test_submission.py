"""How requests come in: whose they are, which queue, how many, and that nothing is left of a no."""

from typing import Any

import pytest

from controller.desk import SITE, Desk, caller, node, spec
from muster.backends.simulated.attempt import Behaviour
from muster.controller.messages import Caller, Receipt
from muster.controller.use_cases.job_actions import JobAction, JobActionRequest, act_on_jobs
from muster.controller.use_cases.submission import NO_QUEUE, NodeKinds, Submission
from muster.controller.use_cases.update import updated
from muster.controller.world.transaction import Transaction
from muster.model.cluster import Ability
from muster.model.errors import ForbiddenError, RefusedError
from muster.model.event import ClusterSeen, NodeSeen
from muster.model.job import Dependency, DependencyKind, JobSpec
from muster.model.launch import NO_LAUNCH, Launch
from muster.model.queue import Ceiling, Queue
from muster.model.site import Role, Token, User
from muster.model.value import ClassName, Duration, Instant, JobId, QueuePath, UserName, replace

ROOT = Caller(user=UserName("root"), door="test", root=True)


def enters(desk: Desk, who: Caller, **asked: Any) -> Receipt:
    """Somebody asks; fields of the entry or the spec."""
    fields = {name: asked.pop(name) for name in ENTRY & asked.keys()}
    user = asked.pop("user", who.user)
    entry = Submission(caller=who, spec=spec(user, **asked), kinds=NodeKinds(), **fields)
    return desk.simulation.journal.write(entry.enter).result()


ENTRY = {"indices", "at_once", "held", "request_key"}


def with_queue(desk: Desk, path: str, **fields: Any) -> None:
    changed = Queue(path=QueuePath(path), **fields)
    desk.changes_site(queues={**SITE.queues, changed.path: changed})


def test_without_a_queue_it_is_the_sites() -> None:
    desk = Desk()

    job = enters(desk, caller("ada"), queue=NO_QUEUE).jobs[0]

    assert desk.job(job).spec.queue == "default"


def test_without_a_queue_it_is_the_users_own_if_they_have_one() -> None:
    desk = Desk()
    ada = User(name=UserName("ada"), default_queue=QueuePath("a/b"))
    desk.changes_site(users={**SITE.users, ada.name: ada})

    job = enters(desk, caller("ada"), queue=NO_QUEUE).jobs[0]

    assert desk.job(job).spec.queue == "a/b"


def test_the_own_queue_is_that_of_whose_job_it_is() -> None:
    desk = Desk()
    ada = User(name=UserName("ada"), default_queue=QueuePath("a/b"))
    desk.changes_site(users={**SITE.users, ada.name: ada})

    job = enters(desk, ROOT, user="ada", queue=NO_QUEUE).jobs[0]

    assert desk.job(job).spec.queue == "a/b"


def test_only_an_admin_submits_for_others() -> None:
    desk = Desk()

    with pytest.raises(ForbiddenError, match="ada cannot submit for grace"):
        enters(desk, caller("ada"), user="grace")
    with pytest.raises(ForbiddenError, match="boss cannot submit for grace"):
        enters(desk, caller("boss"), user="grace", queue="a")
    job = enters(desk, ROOT, user="grace").jobs[0]

    assert desk.job(job).spec.user == "grace"


def test_a_token_for_one_queue_does_not_submit_to_another() -> None:
    desk = Desk()
    key = Token(
        id="t",
        user=UserName("ada"),
        hashed="",
        role=Role.USER,
        queue=QueuePath("a"),
        made_at=Instant(0),
        expires_at=Instant(1),
    )
    ada = replace(caller("ada"), token=key)

    assert enters(desk, ada, queue="a/b").jobs
    with pytest.raises(ForbiddenError, match="takes the role user in default"):
        enters(desk, ada, queue="default")


def test_a_queue_that_does_not_exist_is_refused() -> None:
    desk = Desk()

    with pytest.raises(RefusedError):
        enters(desk, caller("ada"), queue="nowhere")

    assert desk.record.jobs == {}


def test_the_parts_of_an_array_have_ids_in_a_row_and_their_indices() -> None:
    desk = Desk()

    receipt = enters(desk, caller("ada"), indices=(3, 5, 9), at_once=2)

    assert receipt.jobs == (1, 2, 3)
    parts = [desk.job(job).spec.array for job in receipt.jobs]
    assert [(part.array, part.index, part.at_once) for part in parts if part] == [
        (1, 3, 2),
        (1, 5, 2),
        (1, 9, 2),
    ]


def test_an_array_of_one_is_an_array() -> None:
    desk = Desk()

    job = enters(desk, caller("ada"), indices=(7,)).jobs[0]

    part = desk.job(job).spec.array
    assert part is not None
    assert part.index == 7


def test_what_it_runs_is_kept_apart_and_once() -> None:
    desk = Desk()

    receipt = enters(desk, caller("ada"), indices=(0, 1))

    assert [desk.job(job).spec.launch for job in receipt.jobs] == [NO_LAUNCH, NO_LAUNCH]
    launch = desk.simulation.parts.store.launch
    assert [launch(job) for job in receipt.jobs] == [Launch(argv=("true",)), None]


@pytest.mark.parametrize(("parts", "fits"), [(3, True), (4, False)])
def test_an_array_needs_a_place_for_each_of_its_parts(parts: int, fits: bool) -> None:
    desk = Desk()
    with_queue(desk, "a", max_submitted=4)
    enters(desk, caller("ada"), queue="a/b")

    def submit() -> Receipt:
        return enters(desk, caller("ada"), queue="a/b", indices=tuple(range(parts)))

    if fits:
        assert len(submit().jobs) == parts
        return
    with pytest.raises(RefusedError, match=f"places for 3 more jobs; this array has {parts}"):
        submit()
    assert len(desk.record.jobs) == 1


def test_requests_that_share_a_transaction_count_each_other() -> None:
    desk = Desk()
    with_queue(desk, "a", max_submitted=2)
    one = Submission(caller=caller("ada"), spec=spec("ada", queue="a"), kinds=NodeKinds())

    def three(transaction: Transaction) -> list[str]:
        answers: list[str] = []
        for _ in range(3):
            try:
                answers.append(f"job {one.enter(transaction).jobs[0]}")
            except RefusedError:
                answers.append("refused")
        return answers

    assert desk.simulation.write(three) == ["job 1", "job 2", "refused"]


def test_a_job_that_is_cancelled_in_the_same_transaction_leaves_its_place() -> None:
    desk = Desk()
    with_queue(desk, "a", max_submitted=1)
    first = enters(desk, caller("ada"), queue="a").jobs[0]
    again = Submission(caller=caller("ada"), spec=spec("ada", queue="a"), kinds=NodeKinds())
    cancel = JobActionRequest(caller=caller("ada"), action=JobAction.CANCEL)

    def both(transaction: Transaction) -> object:
        act_on_jobs(cancel, (first,), transaction)
        return again.enter(transaction).jobs

    assert desk.simulation.write(both) == (2,)


def test_a_held_request_waits_for_its_own_user() -> None:
    desk = Desk()

    job = enters(desk, caller("ada"), held=True).jobs[0]

    assert desk.state(job) == "held"
    assert desk.asks("ada", JobAction.RELEASE, job).done == (job,)


def afterok(job: JobId) -> tuple[Dependency, ...]:
    return (Dependency(kind=DependencyKind.AFTER_OK, job=job),)


def test_a_job_can_depend_on_one_that_ended_long_ago() -> None:
    desk = Desk()
    first = desk.submits(lasts=1)
    desk.lets_all_end()

    second = enters(desk, caller("ada"), after=afterok(first)).jobs[0]
    desk.will_go(second, Behaviour(work=Duration(1_000)))
    desk.lets_all_end()

    assert desk.state(second) == "completed"


def test_a_job_can_depend_on_one_that_ends_in_the_same_transaction() -> None:
    desk = Desk()
    first = enters(desk, caller("ada"), held=True).jobs[0]
    cancel = JobActionRequest(caller=caller("ada"), action=JobAction.CANCEL)
    after = (Dependency(kind=DependencyKind.AFTER_ANY, job=first),)
    entry = Submission(caller=caller("ada"), spec=spec("ada", after=after), kinds=NodeKinds())

    def both(transaction: Transaction) -> Receipt:
        act_on_jobs(cancel, (first,), transaction)
        return entry.enter(transaction)

    second = desk.simulation.journal.write(both).result().jobs[0]
    desk.will_go(second, Behaviour(work=Duration(1_000)))
    desk.lets_all_end()

    assert desk.state(second) == "completed"


def test_no_job_can_depend_on_one_that_never_was() -> None:
    with pytest.raises(RefusedError, match="names job 99, which does not exist"):
        enters(Desk(), caller("ada"), after=afterok(JobId(99)))


def test_who_submitted_what_is_in_the_audit_log() -> None:
    desk = Desk()

    enters(desk, ROOT, user="grace", indices=(0, 1))

    entry = desk.simulation.parts.history.audit(before=None, limit=1)[0]
    assert (entry.user, entry.door, entry.action, entry.subject, entry.detail) == (
        "root",
        "test",
        "submit",
        "job 1",
        "2 to default",
    )


def test_nodes_that_come_are_counted_from_then_on() -> None:
    desk, kinds = Desk(gpus=1), NodeKinds()
    entry = Submission(caller=caller("ada"), spec=spec("ada", gpus=8), kinds=kinds)
    with pytest.raises(RefusedError):
        desk.simulation.journal.write(entry.enter).result()

    desk.applies(NodeSeen(at=Instant(0), node=node("n2", gpus=8)))

    assert desk.simulation.journal.write(entry.enter).result().jobs == (1,)


def images_run(desk: Desk, **abilities: bool) -> None:
    """Its clusters have just these of the abilities about images."""
    found = desk.backend.cluster
    can = replace(found.abilities, **({"images": False, "image_files": False} | abilities))
    desk.applies(ClusterSeen(at=Instant(0), cluster=replace(found, abilities=can)))


def test_an_image_is_refused_where_nothing_runs_images() -> None:
    desk = Desk()
    images_run(desk)

    with pytest.raises(RefusedError, match="No node can run the image alpine"):
        enters(desk, caller("ada"), launch=Launch(argv=("true",), image="alpine"))
    with pytest.raises(RefusedError, match="apptainer is missing"):
        enters(desk, caller("ada"), launch=Launch(argv=("true",), image="/images/torch.sif"))


def test_an_image_is_taken_where_one_can_be_run_or_done_without() -> None:
    desk = Desk()
    images_run(desk, images=True)
    image, file = (Launch(argv=("true",), image=each) for each in ("alpine", "/t.sif"))

    assert enters(desk, caller("ada"), launch=image).jobs
    with pytest.raises(RefusedError, match=r"the image /t\.sif"):
        enters(desk, caller("ada"), launch=file)
    desk.changes_site(images_on_host=True)
    assert enters(desk, caller("ada"), launch=file).jobs


def test_a_queue_says_whether_its_commands_run_without_their_images() -> None:
    desk = Desk()
    images_run(desk, images=False)
    image = Launch(argv=("true",), image="alpine")
    default = desk.record.site.default_queue
    queue = desk.record.site.queues[default]

    desk.changes_site(queues={default: replace(queue, images_on_host=True)})
    assert enters(desk, caller("ada"), launch=image).jobs
    desk.changes_site(queues={default: replace(queue, images_on_host=False)}, images_on_host=True)
    with pytest.raises(RefusedError, match="No node can run the image alpine"):
        enters(desk, caller("ada"), launch=image)


def test_what_running_a_job_takes_is_kept_when_it_is_changed() -> None:
    desk = Desk()
    images_run(desk, images=True)
    image = Launch(argv=("true",), image="alpine")
    job = enters(desk, caller("ada"), launch=image, held=True).jobs[0]

    def change(spec: JobSpec) -> JobSpec:
        return replace(spec, name="other")

    desk.simulation.journal.write(
        lambda transaction: updated(caller("ada"), job, change, (NodeKinds(), transaction))
    ).result()

    changed = desk.job(job).spec
    assert (changed.name, changed.takes) == ("other", (Ability.IMAGES,))


def test_a_request_that_is_sent_again_makes_no_second_job() -> None:
    desk = Desk()

    first = enters(desk, caller("ada"), request_key="k1", indices=(1, 2))
    again = enters(desk, caller("ada"), request_key="k1", indices=(1, 2))
    other = enters(desk, caller("ada"), request_key="k2")
    theirs = enters(desk, caller("grace"), request_key="k1")

    assert len(first.jobs) == 2
    assert again.jobs == first.jobs
    assert {*other.jobs, *theirs.jobs}.isdisjoint(first.jobs)


def test_a_request_that_is_sent_again_at_the_same_moment_makes_no_second_job() -> None:
    desk = Desk()

    def twice(transaction: Transaction) -> tuple[Receipt, Receipt]:
        entry = Submission(
            caller=caller("ada"), spec=spec("ada"), kinds=NodeKinds(), request_key="k1"
        )
        return entry.enter(transaction), entry.enter(transaction)

    first, again = desk.simulation.journal.write(twice).result()

    assert first.jobs == again.jobs


def test_a_user_has_no_more_unfinished_jobs_than_they_may() -> None:
    desk = Desk()
    ada = User(name=UserName("ada"), max_submitted=3)
    desk.changes_site(users={**SITE.users, ada.name: ada})

    enters(desk, caller("ada"), indices=(1, 2), held=True)
    enters(desk, caller("ada"), held=True)
    with pytest.raises(RefusedError, match="User ada may have 3 unfinished jobs"):
        enters(desk, caller("ada"))

    assert enters(desk, caller("grace")).jobs


def test_a_queue_bounds_the_unfinished_jobs_of_each_user_in_it() -> None:
    desk = Desk()
    with_queue(desk, "a", max_submitted_per_user=2)

    enters(desk, caller("ada"), queue="a", indices=(1, 2), held=True)
    with pytest.raises(RefusedError, match="User ada in queue a may have 2 unfinished jobs"):
        enters(desk, caller("ada"), queue="a")

    assert enters(desk, caller("grace"), queue="a").jobs
    assert enters(desk, caller("ada"), queue="default").jobs


def test_the_bound_for_each_user_is_that_of_the_nearest_queue_and_counts_there() -> None:
    desk = Desk()
    with_queue(desk, "a", max_submitted_per_user=1)

    enters(desk, caller("ada"), queue="a", held=True)
    enters(desk, caller("ada"), queue="a/b", held=True)
    with pytest.raises(RefusedError, match="User ada in queue a/b may have 1 unfinished job"):
        enters(desk, caller("ada"), queue="a/b")


def test_a_class_bounds_unfinished_jobs_for_a_user_and_for_a_queue() -> None:
    desk = Desk()
    name = ClassName("normal")
    bounded = replace(
        SITE.classes[name], per_user=Ceiling(submitted=1), per_queue=Ceiling(submitted=2)
    )
    desk.changes_site(classes={**SITE.classes, name: bounded})

    enters(desk, caller("ada"), held=True, job_class="normal")
    with pytest.raises(RefusedError, match="User ada may have 1 unfinished"):
        enters(desk, caller("ada"), job_class="normal")
    enters(desk, caller("grace"), held=True, job_class="normal")
    with pytest.raises(RefusedError, match="Queue default may have 2 unfinished"):
        enters(desk, caller("linus"), job_class="normal")
