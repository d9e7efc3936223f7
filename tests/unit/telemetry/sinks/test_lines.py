"""What of a line may leave this machine."""

from muster.telemetry.sinks.lines import LONGEST, cleaned

OWN_TOKEN = "mst_0a1b2c3d_Zm9vYmFyLWJhei1xdXV4LXNlY3JldC10b2tlbg"  # noqa: S105 -- made up


def test_tokens_do_not_leave() -> None:
    assert cleaned(f"MUSTER_TOKEN={OWN_TOKEN} and more") == "MUSTER_TOKEN=mst_0a1b2c3d_... and more"


def test_what_headers_carry_does_not_leave() -> None:
    shown = cleaned('{"Authorization": "Bearer abc.def"} authorization: Basic dTpw end')

    assert "abc.def" not in shown
    assert "dTpw" not in shown
    assert shown.endswith(" end")


def test_lines_are_cut_and_can_be_read() -> None:
    assert len(cleaned("x" * (LONGEST + 1))) == LONGEST
    cleaned("half a sign \ud83d").encode()
