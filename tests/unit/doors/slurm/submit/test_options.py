import pytest

from muster.doors.slurm.commands import sacct, sinfo, squeue
from muster.doors.slurm.submit.job_options import OPTIONS, SBATCH
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Manner, parsed

HELP = '\nTry "{}" for more information\n'


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ("--foo", "sbatch: unrecognized option '--foo'"),
        (
            "--no",
            (
                "sbatch: option '--no' is ambiguous; possibilities: '--no-kill' '--no-requeue' "
                "'--nodefile' '--nodelist' '--nodes'"
            ),
        ),
        ("-Z", "sbatch: invalid option -- 'Z'"),
        ("--time", "sbatch: option '--time' requires an argument"),
        ("-t", "sbatch: option requires an argument -- 't'"),
        ("--parsable=3", "sbatch: option '--parsable' doesn't allow an argument"),
        ("--wra", "sbatch: option '--wrap' requires an argument"),
    ],
)
def test_sbatch_says_what_is_wrong_as_getopt_does(argv: str, text: str) -> None:
    with pytest.raises(SlurmError) as caught:
        parsed(OPTIONS, argv.split(), SBATCH)

    assert caught.value.text == text + HELP.format("sbatch --help")
    assert caught.value.code == 255


def test_what_could_be_meant_is_listed_in_slurms_order() -> None:
    squeue_manner, sinfo_manner = squeue.MANNER, Manner(command="sinfo")

    with pytest.raises(SlurmError, match="'--name' '--noconvert' '--node' '--nodes' '--nodelist'"):
        parsed(squeue.OPTIONS, ["--n"], squeue_manner)
    with pytest.raises(SlurmError, match="'--nodes' '--noconvert' '--noheader'"):
        parsed(sinfo.OPTIONS, ["--no"], sinfo_manner)
    with pytest.raises(SlurmError) as caught:
        parsed(sacct.OPTIONS, ["--foo"], sacct.MANNER)
    assert caught.value.text == "sacct: unrecognized option '--foo'\n"


def test_beginnings_clusters_and_optional_values() -> None:
    read = parsed(
        OPTIONS, "-HJ fit --depend=afterok:1 --nice --exclusive=user -c4 x -y".split(), SBATCH
    )

    assert read.given == (
        ("hold", None),
        ("job-name", "fit"),
        ("dependency", "afterok:1"),
        ("nice", None),
        ("exclusive", "user"),
        ("cpus-per-task", "4"),
    )
    assert read.rest == ("x", "-y")


def test_most_commands_take_options_behind_other_words() -> None:
    read = parsed(squeue.OPTIONS, ["x", "-h", "--", "-l"], squeue.MANNER)

    assert (read.given, read.rest) == ((("noheader", None),), ("x", "-l"))
