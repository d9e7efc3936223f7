"""What sacctmgr's words make of the rules of a site."""

from collections.abc import Callable

import pytest

from muster.doors.config.parse import site_from
from muster.doors.slurm.managing import accounts, classes, users
from muster.doors.slurm.managing.edit import Edit, EditFacts, Editing
from muster.doors.slurm.managing.flatfile import dumped
from muster.doors.slurm.managing.loading import loading
from muster.doors.slurm.managing.words import Assignment, Words, changed, meant, split, word_of
from muster.doors.slurm.words.errors import SlurmError
from muster.model.errors import MusterError
from muster.model.job import Job, JobSpec, TaskGroup
from muster.model.queue import Meter, PreemptMode, Quota, Scope
from muster.model.site import Grant, Role, Site
from muster.model.value import (
    HOUR,
    SECOND,
    ClassName,
    Duration,
    GpuModel,
    Instant,
    JobId,
    QueuePath,
    UserName,
)

SITE = site_from("""
queues:
  default: {}
  science: {weight: 60, queues: {nlp: {}, vision: {}}}
  closed: {may_submit: [ann]}
classes: {normal: {priority: 10}, low: {}, high: {priority: 100, preempts: [low]}}
pools: {gpu: {cluster: lab}}
users: {alice: {roles: ["user:science"], default_queue: science}}
""")
A100 = GpuModel("A100-40GB")
AROUND = EditFacts(cluster="lab", nodes={}, models=(A100,), jobs=lambda _: ())
SCIENCE, NLP = QueuePath("science"), QueuePath("science/nlp")
ALICE, BOB = UserName("alice"), UserName("bob")

Making = Callable[[Words, EditFacts], Editing]


def edit(making: Making, line: str, site: Site = SITE, around: EditFacts = AROUND) -> Edit:
    first = "set" if making.__name__ in {"adding", "coordinating"} else "where"
    return making(split(line.split(), first=first), around)(site)


def refusal(making: Making, line: str, site: Site = SITE, around: EditFacts = AROUND) -> str:
    with pytest.raises(SlurmError) as refused:
        edit(making, line, site, around)
    return str(refused.value)


def test_words_say_which_and_what() -> None:
    found = split(["where", "name=alice", "set", "qos+=high,low", "priority=3"])

    assert found.where == (Assignment(name="name", sign="=", value="alice"),)
    assert [word.values for word in found.what] == [("high", "low"), ("3",)]


@pytest.mark.parametrize(
    ("word", "after"),
    [("p=c", ("c",)), ("p+=c", ("a", "b", "c")), ("p-=a,x", ("b",)), ("p=", ())],
)
def test_a_list_is_set_or_added_to_or_taken_from(word: str, after: tuple[str, ...]) -> None:
    assert changed(("a", "b"), word_of(word)) == after


def test_options_may_be_cut_short_in_any_letters() -> None:
    assert meant("grptres", accounts.OPTIONS) == "GrpTRES"
    assert meant("FAIR", accounts.OPTIONS) == "Fairshare"
    assert meant("MaxWall", classes.OPTIONS) == "MaxWallDurationPerJob"
    assert meant("x", accounts.OPTIONS) is None


def test_accounts_are_added_below_a_parent_that_is_known_by_its_last_part() -> None:
    done = edit(
        accounts.adding, "bert,t5 parent=nlp fairshare=3 GrpJobs=7 GrpSubmit=9 defaultqos=low"
    )

    made = done.site.queues[QueuePath("science/nlp/bert")]
    assert (made.weight, made.max_jobs, made.max_submitted) == (3, 7, 9)
    assert made.default_class == "low"
    assert QueuePath("science/nlp/t5") in done.site.queues
    assert done.printed[:3] == (" Adding Account(s)", "  science/nlp/bert", "  science/nlp/t5")


def test_an_account_that_is_there_is_not_added_again() -> None:
    done = edit(accounts.adding, "nlp parent=science")

    assert (done.printed, done.code, done.site) == ((" Nothing new added.",), 1, SITE)


def test_limits_become_lines_of_quota_and_go_with_minus_one() -> None:
    line = "science set GrpTRES=cpu=64,mem=1G,gres/gpu=8,gres/gpu:a100=4"
    done = edit(accounts.modifying, line)
    gone = edit(accounts.modifying, "science set grptres=cpu=-1,mem=-1", done.site)

    assert done.site.queues[SCIENCE].quotas == (
        Quota(scope=Scope(meter=Meter.CPU), limit=64_000),
        Quota(scope=Scope(meter=Meter.MEMORY), limit=1_024),
        Quota(scope=Scope(), limit=8_000),
        Quota(scope=Scope(model=A100), limit=4_000),
    )
    assert len(gone.site.queues[SCIENCE].quotas) == 2


@pytest.mark.parametrize(
    ("making", "line", "what"),
    [
        (accounts.modifying, "science set MaxJobs=5", "MaxJobs of an account is not supported"),
        (accounts.modifying, "science set GrpWall=5", "GrpWall of an account is not supported"),
        (accounts.modifying, "science set parent=closed", "Parent of an account that exists"),
        (accounts.modifying, "science set GrpTRES=node=5", "TRES 'node' is not supported"),
        (accounts.modifying, "science set qos=low", "every user has every QOS"),
        (accounts.modifying, "science set fairshare=parent", "a share is a number"),
        (accounts.modifying, "science set foo=1", " Unknown option: foo=1"),
        (accounts.modifying, "science", " You didn't give me anything to set"),
        (users.modifying, "alice set MaxJobs=5", "give a QOS MaxJobsPerUser"),
        (users.modifying, "alice set fairshare=5", "users of an account share alike"),
        (users.adding, "bob", " Need name of account to add user to."),
        (users.adding, "bob account=nosuch", " This account 'nosuch' doesn't exist."),
        (classes.modifying, "low set GrpTRES=cpu=1", "GrpTRES of a QOS is not supported"),
        (classes.modifying, "low set flags=DenyOnLimit", "Flags of a QOS is not supported"),
        (classes.modifying, "low set usagefactor=2", "use counts the same in every QOS"),
        (classes.modifying, "low set preempt=nosuch", "nosuch"),
        (classes.modifying, "low set priority=abc", "Invalid value for Priority (abc)"),
    ],
)
def test_what_has_no_counterpart_or_no_sense_is_refused_by_name(
    making: Making, line: str, what: str
) -> None:
    assert what in refusal(making, line)


def test_what_is_not_kept_is_said() -> None:
    done = edit(accounts.adding, "law Description=x Organization=y")

    assert done.warned == (
        "sacctmgr: warning: Description is not kept by Muster",
        "sacctmgr: warning: Organization is not kept by Muster",
    )


def test_a_user_belongs_to_the_accounts_that_he_is_added_to_and_to_no_other() -> None:
    done = edit(users.adding, "bob account=nlp,vision defaultaccount=vision")
    bob = done.site.users[BOB]

    assert bob.grants == (
        Grant(role=Role.USER, queue=NLP),
        Grant(role=Role.USER, queue=QueuePath("science/vision")),
    )
    assert bob.default_queue == "science/vision"


def test_where_there_is_a_list_of_who_may_submit_a_new_user_comes_onto_it() -> None:
    done = edit(users.adding, "bob account=closed")

    assert done.site.queues[QueuePath("closed")].may_submit == ("ann", "bob")


def test_the_last_one_on_such_a_list_is_not_taken_off_it() -> None:
    assert "ann is the only one who may submit" in refusal(users.deleting, "ann")


def test_who_leaves_his_last_account_gets_no_more_rights_by_that() -> None:
    done = edit(users.deleting, "alice account=science")

    assert done.site.users[ALICE].grants == (Grant(role=Role.VIEWER),)
    assert done.site.users[ALICE].default_queue is None


def test_levels_are_roles_everywhere_and_coordinators_have_one_in_an_account() -> None:
    level = edit(users.modifying, "alice set AdminLevel=oper").site
    both = edit(users.coordinating, "account=nlp names=alice", level).site
    back = edit(users.modifying, "alice set adminlevel=none", both).site
    gone = edit(users.dismissing, "account=nlp names=alice", back).site

    assert Grant(role=Role.QUEUE_ADMIN) in level.users[ALICE].grants
    assert Grant(role=Role.QUEUE_ADMIN, queue=NLP) in both.users[ALICE].grants
    assert Grant(role=Role.QUEUE_ADMIN) not in back.users[ALICE].grants
    assert Grant(role=Role.QUEUE_ADMIN, queue=NLP) not in gone.users[ALICE].grants


def test_a_qos_is_a_job_class() -> None:
    line = (
        "urgent priority=500 preempt=low,normal preemptmode=cancel gracetime=90 maxwall=1:00:00 "
        "MaxTRESPerUser=gres/gpu=8,cpu=64 MaxJobsPU=3 MaxTRESPA=mem=2G preemptexempttime=10"
    )
    made = edit(classes.adding, line).site.classes[ClassName("urgent")]
    off = edit(classes.modifying, "high set preemptmode=off preempt-=low").site

    assert (made.priority, made.preempts) == (500, ("low", "normal"))
    assert (made.preempt_mode, made.preemptible) == (PreemptMode.CANCEL, True)
    assert (made.grace, made.max_time) == (90 * SECOND, HOUR)
    assert made.min_run == Duration(600_000)
    assert (made.per_user.gpu_milli, made.per_user.cpu_milli) == (8_000, 64_000)
    assert (made.per_user.jobs, made.per_queue.memory_mib) == (3, 2_048)
    assert not off.classes[ClassName("high")].preemptible
    assert off.classes[ClassName("high")].preempts == ()


def test_a_qos_that_goes_is_preempted_by_none() -> None:
    done = edit(classes.deleting, "low")

    assert done.site.classes[ClassName("high")].preempts == ()


def test_accounts_go_with_those_below_them_and_nobody_belongs_to_them() -> None:
    done = edit(accounts.deleting, "science")

    assert sorted(done.site.queues) == ["closed", "default"]
    assert done.site.users[ALICE].grants == (Grant(role=Role.VIEWER),)
    assert done.printed == (
        " Deleting accounts...",
        "  science",
        "  science/nlp",
        "  science/vision",
    )


def test_the_account_of_those_who_name_none_stays() -> None:
    assert "where jobs go that name no account" in refusal(accounts.deleting, "default")


def test_what_live_jobs_need_stays() -> None:
    spec = JobSpec(
        name="train",
        user=ALICE,
        queue=NLP,
        job_class=ClassName("low"),
        groups=(TaskGroup(name="main"),),
    )
    around = EditFacts(
        cluster="lab",
        nodes={},
        models=(),
        jobs=lambda _: (Job(id=JobId(7), spec=spec, submitted_at=Instant(0)),),
    )

    assert "Job(s) active" in refusal(accounts.deleting, "science", around=around)
    assert "Job(s) active" in refusal(users.deleting, "alice", around=around)
    assert "jobs have the QOS low" in refusal(classes.deleting, "low", around=around)


def test_a_name_that_two_accounts_end_with_must_be_given_in_full() -> None:
    two = edit(accounts.adding, "nlp").site
    three = edit(accounts.adding, "x/nlp", edit(accounts.adding, "x", two).site).site

    assert edit(accounts.modifying, "nlp set priority=2", three).site.queues[QueuePath("nlp")]
    assert "Several accounts are called 'vision'" in refusal(
        accounts.modifying,
        "vision set priority=2",
        edit(accounts.adding, "x/vision", edit(accounts.adding, "x").site).site,
    )


REAL = """\
# as a real Slurm dumped it
Cluster - 'lab':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'q1':Description='q1':Organization='q1':Fairshare=1
Account - 'physics':Description='s':Organization='lab':Fairshare=60:GrpTRES=cpu=64,gres/gpu=8:\
GrpJobs=10:GrpSubmitJobs=100:MaxJobs=5:MaxWallDurationPerJob=1440
Parent - 'physics'
User - 'carol':DefaultAccount='physics':Coordinator='physics':DefaultQOS='normal':Fairshare=1
Account - 'optics':Description='nlp':Organization='science':Fairshare=1
"""


def test_a_dump_of_a_real_slurm_is_loaded_and_what_it_cannot_mean_here_is_said() -> None:
    done = loading(REAL, AROUND, clean=False)(SITE)
    physics = done.site.queues[QueuePath("physics")]
    carol = done.site.users[UserName("carol")]

    assert (physics.weight, physics.max_jobs, physics.max_submitted) == (60, 10, 100)
    assert QueuePath("physics/optics") in done.site.queues
    assert carol.grants == (Grant(role=Role.QUEUE_ADMIN, queue=QueuePath("physics")),)
    assert [each.rpartition(" is ")[0] for each in done.warned] == [
        "sacctmgr: warning: maxjobs of account physics",
        "sacctmgr: warning: maxwalldurationperjob of account physics",
        "sacctmgr: warning: defaultqos of user carol",
    ]


def test_the_most_submitted_jobs_of_accounts_and_users_go_through_a_flat_file() -> None:
    site = edit(accounts.modifying, "nlp set MaxSubmitJobs=7").site
    site = edit(users.modifying, "alice set MaxSubmitJobs=9", site).site

    text = "\n".join(dumped(site, AROUND.cluster, AROUND.nodes))
    done = loading(text, AROUND, clean=False)(SITE)

    assert done.site.queues[NLP].max_submitted_per_user == 7
    assert done.site.users[ALICE].max_submitted == 9
    assert done.warned == ()


def test_the_most_submitted_jobs_of_an_account_can_be_set_and_taken_away() -> None:
    bounded = edit(accounts.adding, "law MaxSubmitJobs=3").site
    free = edit(accounts.modifying, "law set MaxSubmitJobs=-1", bounded).site

    assert bounded.queues[QueuePath("law")].max_submitted_per_user == 3
    assert free.queues[QueuePath("law")].max_submitted_per_user is None


def test_a_clean_load_removes_what_the_file_has_not() -> None:
    text = "\n".join(dumped(SITE, AROUND.cluster, AROUND.nodes)).replace(
        "Account - 'vision'", "# Account - 'vision'"
    )
    done = loading(text, AROUND, clean=True)(SITE)

    assert QueuePath("science/vision") not in done.site.queues
    assert "- queue science/vision" in done.printed


def test_a_file_that_cannot_be_read_is_refused_with_its_line() -> None:
    with pytest.raises(MusterError, match="line 2: 'what is this' is no line of a sacctmgr dump"):
        loading("Cluster - 'lab'\nwhat is this\n", AROUND, clean=False)
    with pytest.raises(SlurmError, match="specify a cluster name first"):
        loading("Parent - 'root'\n", AROUND, clean=False)
