"""What a site's staff check with ReFrame: GPUs are given out, and a check that must fail does."""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, sanity_function


@rfm.simple_test
class Gpus(rfm.RunOnlyRegressionTest):
    """Two GPUs are asked for and given."""

    valid_systems = ["muster"]
    valid_prog_environs = ["plain"]
    executable = "echo"
    executable_opts = ["gpus: $CUDA_VISIBLE_DEVICES on $SLURM_JOB_NODELIST; speed: 42 it/s"]
    extra_resources = {"gpu": {"num": 2}}
    time_limit = "5m"

    @sanity_function
    def are_two(self) -> bool:
        return sn.assert_found(r"gpus: \d,\d on pretend\d", self.stdout)

    @performance_function("it/s")
    def speed(self) -> float:
        return sn.extractsingle(r"speed: (\d+)", self.stdout, 1, float)


@rfm.simple_test
class Fails(rfm.RunOnlyRegressionTest):
    """The job ends badly, so the check must fail."""

    valid_systems = ["muster"]
    valid_prog_environs = ["plain"]
    executable = "exit 3"
    time_limit = "5m"

    @sanity_function
    def is_well(self) -> bool:
        return sn.assert_eq(self.job.exitcode, 0)
