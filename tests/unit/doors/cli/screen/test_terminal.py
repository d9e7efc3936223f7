import pytest

from muster.doors.cli.screen.terminal import Keys, size_message


@pytest.mark.parametrize(
    ("typed", "sent", "leaves"),
    [
        ([b"ls\r"], b"ls\r", False),
        ([b"\x03"], b"\x03", False),
        ([b"\x10\x11"], b"", True),
        ([b"a\x10", b"\x11"], b"a", True),
        ([b"\x10", b"a"], b"\x10a", False),
        ([b"\x10\x10\x11"], b"\x10", True),
        ([b"\x11"], b"\x11", False),
    ],
)
def test_only_ctrl_p_ctrl_q_leaves_and_nothing_else_is_lost(
    typed: list[bytes], sent: bytes, leaves: bool
) -> None:
    keys = Keys()

    keys_read = [keys.typed(each) for each in typed]

    assert b"".join(part for part, _ in keys_read) == sent
    assert keys_read[-1][1] is leaves


def test_a_size_is_reported_as_json() -> None:
    assert size_message(24, 80) == '{"rows":24,"columns":80}'
