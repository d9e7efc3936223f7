import pytest

from muster.doors.slurm.submit.directives import BadDirectiveError, components


def test_a_line_may_have_several_options_quotes_and_a_remark() -> None:
    script = (
        "#!/bin/bash\n"
        "#SBATCH -N 2 --gres=gpu:2  # two of them\n"
        "#SBATCH --job-name=\"my job\" -o 'a b.out' --comment=a\\ b\n"
        "\n"
        "# a remark\n"
        "##SBATCH --hold\n"
        "#SBATCHX --hold\n"
        '#SBATCH --partition="gpu"\n'
        "echo hello\n"
        "#SBATCH --requeue\n"
    )

    (options,) = components(script)

    assert options == (
        *("-N", "2", "--gres=gpu:2", "--job-name=my job", "-o", "a b.out", "--comment=a b"),
        "--partition=gpu",
    )


@pytest.mark.parametrize("word", ["hetjob", "packjob"])
def test_a_word_of_its_own_separates_components(word: str) -> None:
    script = f"#!/bin/sh\n#SBATCH -n 1\n#SBATCH {word}\n#SBATCH -n 4 -p big\ntrue\n"

    assert components(script) == (("-n", "1"), ("-n", "4", "-p", "big"))


def test_quotes_must_end() -> None:
    with pytest.raises(BadDirectiveError):
        components('#!/bin/sh\n#SBATCH --comment="open\n')
