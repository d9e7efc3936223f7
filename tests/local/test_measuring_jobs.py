from local.here import Here, now
from muster.model.samples import JobSample


def sample_of(here: Here, job: int = 1) -> JobSample | None:
    found = here.backend.samples(now()).jobs
    return next((each for each in found if each.job == job), None)


def test_a_job_that_computes_is_told_from_one_that_sleeps(here: Here) -> None:
    from_first_look: list[JobSample] = []

    def computes() -> bool:
        sample = sample_of(here)
        if sample is not None:
            from_first_look.append(sample)
        return sample is not None and (sample.busiest_thread_milli or 0) > 0

    here.python("while True: pass")
    here.until(computes)

    assert from_first_look[0].cpu_used_milli is None
    assert from_first_look[-1].processes is not None
    assert (from_first_look[-1].cpu_ns_total or 0) > 0


def test_a_job_that_is_over_is_not_measured(here: Here) -> None:
    here.shell("true")

    here.ends()

    assert sample_of(here) is None


def test_the_machine_is_measured_beside_its_jobs(here: Here) -> None:
    (host,) = here.backend.samples(now()).hosts

    assert host.node == "n1"
    assert (host.memory_bytes or 0) > (host.memory_free_bytes or 0) > 0
    assert [disk.what for disk in host.disks] == ["state", "tmp"]
