"""Whatever is asked for, there is an answer, and an accepted request stays accepted."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muster.lifecycle.admit import admit
from muster.lifecycle.refusal import Accepted, Refusal
from muster.model.gpu import GpuAsk, Mig, MpsShare, TimeShare
from muster.model.job import (
    ArrayPart,
    Ask,
    Dependency,
    DependencyKind,
    JobSpec,
    RetryPolicy,
    Spot,
    TaskGroup,
    Together,
    Where,
)
from muster.model.queue import UNNAMED, Percent, Quota, Scope, WhenFull
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, PoolName, QueuePath
from unit.lifecycle.given import A100, ANN, BOB, H100, NOW, queue, world

# Small numbers on both sides of nothing, and a few that are far too large.
numbers = st.integers(-2, 12) | st.sampled_from([1_000, 1_001, 100_000, 10**12])
few = st.integers(1, 4)
queues = st.sampled_from(["acme", "acme/nlp", "none", ""]).map(QueuePath)
pools = st.sampled_from(["a100", "spot", "none"]).map(PoolName)

slices = st.one_of(
    st.none(),
    st.builds(Mig, profile=st.sampled_from(["1g.5gb", "1g.10gb", "9g.9gb"])),
    st.builds(MpsShare, milli=numbers, memory_mib=numbers),
    st.builds(TimeShare, replicas=numbers),
)
gpu_asks = st.builds(
    GpuAsk,
    count=numbers,
    slice=slices,
    models=st.lists(st.sampled_from([A100, H100, "none"]), max_size=2).map(tuple),
    min_memory_mib=numbers,
)
groups = st.builds(
    TaskGroup,
    name=st.sampled_from(["main", "other"]),
    count=numbers | few,
    min_count=st.none() | numbers,
    each=st.builds(Ask, cpu_milli=numbers, memory_mib=numbers, gpus=st.none() | gpu_asks),
    together=st.none() | st.builds(Together, level=st.sampled_from(["rack", "none"])),
    where=st.builds(Where, max_per_node=st.none() | numbers),
)
wild = st.builds(
    JobSpec,
    name=st.just("wild"),
    user=st.sampled_from([ANN, BOB]),
    queue=queues,
    groups=st.lists(groups, max_size=2).map(tuple),
    job_class=st.sampled_from([UNNAMED, ClassName("normal"), ClassName("none")]),
    pools=st.lists(pools, max_size=2).map(tuple),
    spot=st.sampled_from(Spot),
    time_limit=st.none() | numbers,
    begin_at=st.none() | st.just(NOW),
    deadline=st.none() | st.sampled_from([NOW - 1, NOW + 10**12]),
    after=st.lists(
        st.builds(Dependency, kind=st.sampled_from(DependencyKind), job=st.none() | numbers),
        max_size=1,
    ).map(tuple),
    array=st.none() | st.builds(ArrayPart, array=st.just(JobId(1)), index=numbers, at_once=numbers),
    max_attempts=numbers,
    retry=st.builds(RetryPolicy, base=numbers, factor=numbers, cap=numbers),
)
tame = st.builds(
    JobSpec,
    name=st.just("tame"),
    user=st.just(ANN),
    queue=st.sampled_from(["acme", "acme/nlp"]).map(QueuePath),
    groups=st.builds(
        TaskGroup,
        count=few,
        each=st.builds(
            Ask, cpu_milli=numbers, memory_mib=numbers, gpus=st.builds(GpuAsk, count=few)
        ),
    ).map(lambda group: (group,)),
    job_class=st.sampled_from([UNNAMED, ClassName("normal")]),
)
limits = st.none() | st.integers(0, 20_000) | st.builds(Percent, percent=st.integers(0, 100))
quotas = st.builds(
    Quota,
    scope=st.sampled_from([Scope(), Scope(model=A100), Scope(pool=PoolName("spot"))]),
    guaranteed=st.integers(0, 8_000),
    limit=limits,
    borrow_limit=limits,
)


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    when_full = draw(st.sampled_from(WhenFull))
    return world(
        queue("acme", quotas=tuple(draw(st.lists(quotas, max_size=2))), when_full=when_full),
        queue("acme/nlp", may_submit=draw(st.sampled_from([(), (ANN,), (BOB,)]))),
    )


@given(wild | tame, worlds())
def test_every_request_gets_an_answer(spec: JobSpec, snapshot: Snapshot) -> None:
    answer = admit(spec, snapshot)

    assert isinstance(answer, Accepted) or answer.advice.endswith((".", "?"))


@given(wild | tame, worlds())
def test_what_was_accepted_once_is_accepted_unchanged(spec: JobSpec, snapshot: Snapshot) -> None:
    answer = admit(spec, snapshot)

    if isinstance(answer, Accepted):
        assert admit(answer.spec, snapshot) == answer


@given(wild | tame, worlds())
def test_an_answer_survives_the_wire(spec: JobSpec, snapshot: Snapshot) -> None:
    answer = admit(spec, snapshot)

    kind = Accepted if isinstance(answer, Accepted) else Refusal
    assert msgspec.json.decode(msgspec.json.encode(answer), type=kind) == answer
