import click
import pytest

from muster.doors.request.lines import directive_lines, directives

SCRIPT = """\
#!/bin/sh
# A comment that is no directive.
#MUSTER --gpus 2 --name "a name"

#MUSTER --env A=1 --label team=nlp   # the rest is a comment
#MUSTER --env B=2
echo hello
#MUSTER --gpus 8
"""


def test_directives_are_read_up_to_the_first_command() -> None:
    assert [number for number, _ in directive_lines(SCRIPT)] == [3, 5, 6]


def test_directives_are_options() -> None:
    found = directives(SCRIPT, "train.sh")

    assert found == {
        "gpus": 2,
        "name": "a name",
        "env": {"A": "1", "B": "2"},
        "labels": {"team": "nlp"},
    }


def test_a_later_line_wins() -> None:
    script = "#!/bin/sh\n#MUSTER --gpus 2\n#MUSTER --gpus 4\n"

    assert directives(script, "train.sh") == {"gpus": 4}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--gpuz 2", "train.sh:2: No such option"),
        ("--gpus two", "train.sh:2: Invalid value for '--gpus'"),
        ("--name 'open", "train.sh:2: No closing quotation; mind the quotes."),
        ("stray", "train.sh:2: Got unexpected extra argument"),
    ],
)
def test_a_mistake_in_a_directive_names_its_line(line: str, message: str) -> None:
    with pytest.raises(click.UsageError) as raised:
        directives(f"#!/bin/sh\n#MUSTER {line}\n", "train.sh")

    assert raised.value.format_message().startswith(message)


def test_words_that_only_begin_like_a_directive_are_comments() -> None:
    assert directives("#!/bin/sh\n#MUSTERED --gpus 2\n# MUSTER --gpus 2\n", "x") == {}
