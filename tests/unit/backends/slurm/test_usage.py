from muster.backends.slurm.usage import Usage, usage

SAID = """\
1.batch|cpu=00:00:12,energy=0,fs/disk=4131,mem=1512K,pages=0,vmem=2592K
2.extern|cpu=00:00:00,energy=0,fs/disk=4131,mem=100K,pages=0,vmem=2592K
2.batch|cpu=1-02:03:04,energy=0,fs/disk=29571,mem=10556K,pages=0,vmem=286008K
2.0|cpu=00:00:30,energy=0,fs/disk=13954,gres/gpumem=3G,gres/gpuutil=180,mem=2M,pages=0,vmem=5840K
"""
"""What a Slurm 22.05 says; its GPUs were not measured, so that those two are from its manual."""


def test_steps_of_a_job_are_added_up() -> None:
    found = usage(SAID)

    assert found["1"] == Usage(cpu_ms=12_000, memory_peak_bytes=1512 << 10)
    assert found["2"] == Usage(
        cpu_ms=(((24 + 2) * 60 + 3) * 60 + 4 + 30) * 1_000,
        memory_peak_bytes=(100 << 10) + (10556 << 10) + (2 << 20),
        gpu_milli=1_800,
        gpu_memory_bytes=3 << 30,
    )


def test_a_cluster_that_gathers_nothing_says_nothing() -> None:
    assert usage("1.batch|\n2.0|\n") == {}


def test_what_makes_no_sense_is_left_out() -> None:
    text = "sstat: error: nothing\n|cpu=1\n3.batch|cpu=now,mem=-4K,gres/gpuutil=,x\n"

    assert usage(text) == {"3": Usage()}
