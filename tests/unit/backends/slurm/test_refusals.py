"""Which of the things that Slurm says end a job, in the words of Slurm 20.11 to 25.05."""

import pytest

from muster.backends.slurm.refusals import failure
from muster.backends.slurm.wire import SlurmDownError, SlurmNotYetError, SlurmRefusedError

SBATCH = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    "said",
    [
        SBATCH + "Unable to contact slurm controller (connect failure)",
        SBATCH + "Socket timed out on send/recv operation",
        SBATCH + "Zero Bytes were transmitted or received",
        SBATCH + "Message receive failure",
        SBATCH + "Message send failure",
        SBATCH + "Communication shutdown failure",
        SBATCH + "Connection reset by peer",
        SBATCH + "Invalid authentication credential",
        SBATCH + "Protocol authentication error",
        SBATCH + "Slurm backup controller in standby mode",
        SBATCH + "Controller is in standby mode, try a different controller",
        SBATCH + "Unable to create job record, try again",
        SBATCH + "Requested nodes are busy",
        SBATCH + "Problem talking to database",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n"
        + SBATCH
        + "Resource temporarily unavailable",
        "sbatch: error: Munge encode failed: Failed to access "
        '"/run/munge/munge.socket.2": No such file or directory\n'
        "sbatch: error: slurm_send_node_msg: auth_g_create: has authentication error\n"
        + SBATCH
        + "Unspecified error",
        (
            "sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
            "sbatch: fatal: Could not establish a configuration source"
        ),
    ],
)
def test_what_passes_ends_no_job(said: str) -> None:
    assert isinstance(failure(said), SlurmDownError)


@pytest.mark.parametrize(
    "why", ["Requested node configuration is not available", "Invalid node name specified"]
)
def test_what_a_slurm_also_says_while_it_comes_back_may_pass(why: str) -> None:
    assert isinstance(failure(SBATCH + why), SlurmNotYetError)


@pytest.mark.parametrize(
    "why",
    [
        "Invalid account or account/partition combination specified",
        "Invalid partition name specified",
        "Invalid qos specification",
        "Invalid generic resource (gres) specification",
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        "User's group not permitted to use this partition",
        "More processors requested than permitted",
        "Access/permission denied",
    ],
)
def test_a_no_is_a_no(why: str) -> None:
    assert type(failure(SBATCH + why)) is SlurmRefusedError
