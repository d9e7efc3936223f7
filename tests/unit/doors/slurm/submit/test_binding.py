import pytest

from muster.doors.slurm.call import Call, CpuBind
from muster.doors.slurm.submit.fleet import machines_of
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.words.binding import binding_words, cpu_bind_of
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Parsed
from muster.model.value import Instant


def request(**options: str) -> Request:
    given = tuple((name.replace("_", "-"), text) for name, text in options.items())
    return Request(command="srun", given=Parsed(given=given), call=Call(), now=Instant(0))


@pytest.mark.parametrize(
    ("text", "bind"),
    [
        ("none", CpuBind(kind="none")),
        ("v,cores", CpuBind(kind="cores", verbose=True)),
        ("Threads,quiet", CpuBind(kind="threads")),
        ("verbose", CpuBind(verbose=True)),
        ("map_cpu:0,2,0x3", CpuBind(kind="map_cpu", values=(0, 2, 3))),
        ("verbose,mask_cpu:0x3,0xF", CpuBind(kind="mask_cpu", values=(3, 15), verbose=True)),
        ("mask_cpu:0x3*2", CpuBind(kind="mask_cpu", values=(3, 3))),
    ],
)
def test_bindings_are_read_as_slurm_reads_them(text: str, bind: CpuBind) -> None:
    assert cpu_bind_of(request(cpu_bind=text), lacks=False) == bind


@pytest.mark.parametrize("text", ["bogus", "map_cpu", "map_cpu:x", "cores,9"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SlurmError, match="Failed to parse --cpu-bind= values"):
        cpu_bind_of(request(cpu_bind=text), lacks=False)


def test_memory_that_is_not_local_is_warned_of() -> None:
    machines = machines_of({})

    assert binding_words([request(mem_bind="local")], machines) == ""
    assert "--mem-bind=rank is ignored" in binding_words([request(mem_bind="rank")], machines)
