"""Each cause comes with what to change, as flags that the door really takes."""

import shlex

import pytest

from muster.doors.cli.submit.command import submit
from muster.doors.slurm.submit.job_options import OPTIONS, SBATCH
from muster.doors.slurm.words.options import parsed
from muster.model.finding import USE_OF, Cause, Use
from muster.model.value import MINUTE, Instant, replace
from muster.telemetry.diagnosis.enough import enough
from muster.telemetry.diagnosis.fixes import MOST_FIXES, fixes_of
from muster.telemetry.diagnosis.flags import Language
from unit.telemetry.diagnosis.given import H100, asked, device, finding, report

SMALL = device(sm=80, busy=300, peak_gib=6)


def flag(cause: Cause, language: Language = Language.SLURM) -> str:
    made = report(device(0), device(1, node="n2", sm=990), findings=(finding(cause, 1),))
    if cause in {Cause.OVERSIZED, Cause.WAITING}:
        made = report(SMALL, findings=(finding(cause),))
    if cause in {Cause.SOME_UNUSED, Cause.HEAT}:
        made = report(device(0), device(1), findings=(finding(cause, 1),))
    if cause is Cause.IDLE:
        made = report(findings=(finding(cause, since=Instant(50 * MINUTE)),))
    gpus = 1 if len(made.devices) == 1 else 2
    return fixes_of(made, asked(language, gpus=gpus, model=H100))[0].flag


@pytest.mark.parametrize(
    ("cause", "slurm", "kubernetes", "muster"),
    [
        (
            Cause.INPUT_CPU,
            "--cpus-per-task=64",
            "resources.limits.cpu: 64",
            "--cpus 64",
        ),
        (
            Cause.SOME_UNUSED,
            "--gpus-per-task=1",
            "resources.limits.nvidia.com/gpu: 1",
            "--gpus 1",
        ),
        (
            Cause.OVERSIZED,
            "--gres=gpu:1g.10gb:1",
            "resources.limits.nvidia.com/mig-1g.10gb: 1",
            "--gpus 1 --slice mig:1g.10gb",
        ),
        (Cause.IDLE, "--time=1:00:00", "activeDeadlineSeconds: 3600", "--time 1h"),
        (
            Cause.STRAGGLER,
            "--exclude=n2",
            "nodeAffinity: {key: kubernetes.io/hostname, operator: NotIn, values: [n2]}",
            "--exclude n2",
        ),
        (
            Cause.COMMUNICATION,
            "--nodes=1",
            "podAffinity: {topologyKey: kubernetes.io/hostname}",
            "--together node",
        ),
        (
            Cause.NO_TENSOR,
            "--export=ALL,NVIDIA_TF32_OVERRIDE=1",
            'env: {name: NVIDIA_TF32_OVERRIDE, value: "1"}',
            "--env NVIDIA_TF32_OVERRIDE=1",
        ),
    ],
)
def test_a_cause_has_its_flag_in_the_words_of_each_door(
    cause: Cause, slurm: str, kubernetes: str, muster: str
) -> None:
    assert [flag(cause, each) for each in Language] == [slurm, kubernetes, muster]


@pytest.mark.parametrize("cause", list(Cause))
def test_muster_submit_takes_every_flag_that_is_told(cause: Cause) -> None:
    words = shlex.split(flag(cause, Language.MUSTER))

    # It would raise on an option that there is not, or a value that it does not read.
    names = ["-h", "--help"]
    submit.make_context("submit", [*words, "train.sh"], help_option_names=names)


@pytest.mark.parametrize("cause", list(Cause))
def test_sbatch_takes_every_flag_that_is_told(cause: Cause) -> None:
    parsed(OPTIONS, [*shlex.split(flag(cause, Language.SLURM)), "train.sh"], SBATCH)


@pytest.mark.parametrize(
    "cause", [cause for cause in Cause if USE_OF[cause] not in {Use.WORKING, Use.UNMEASURED}]
)
def test_whatever_wastes_comes_with_something_to_change(cause: Cause) -> None:
    found = fixes_of(report(findings=(finding(cause),)), asked())

    assert found[0].cause is cause
    assert found[0].text


def test_the_unknown_names_what_was_not_measured() -> None:
    unknown = finding(Cause.UNKNOWN, missing=("sm", "power"), wasted_micros=0)

    first = fixes_of(report(findings=(unknown,)), asked())[0]

    assert "sm, power" in first.text


def test_three_things_are_told_at_most_and_none_twice() -> None:
    causes = (Cause.INPUT_CPU, Cause.NO_TENSOR, Cause.HEAT, Cause.COPYING)
    found = fixes_of(report(findings=tuple(map(finding, causes))), asked())

    assert len(found) == MOST_FIXES
    assert len({fix.text for fix in found}) == MOST_FIXES


def test_the_request_that_would_have_done_leaves_a_fifth_above_what_was_needed() -> None:
    found = enough(report(SMALL), asked(model=H100, ended_well=True))

    assert [(each.what, each.flag) for each in found] == [
        ("GPU", "--gres=gpu:1g.10gb:1"),
        ("CPUs", "--cpus-per-task=3"),
        ("memory", "--mem=12288M"),
        ("time", "--time=1:12:00"),
    ]


def test_a_gpu_that_cannot_be_cut_is_shared_under_mps() -> None:
    (gpu, *_) = enough(report(SMALL), asked())

    assert gpu.flag == "--gres=mps:10"


def test_a_job_that_needed_what_it_had_is_told_nothing() -> None:
    busy = report(nodes=())

    assert enough(busy, asked()) == ()
    assert fixes_of(busy, asked()) == ()


def test_a_job_that_did_not_end_by_itself_says_nothing_of_time() -> None:
    live = replace(report(nodes=()), is_over=False)

    assert enough(live, asked(ended_well=True)) == ()
    assert enough(report(nodes=()), asked(ended_well=False)) == ()
