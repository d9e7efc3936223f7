import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.backends.local.isolation.devices import (
    DeviceWall,
    allow_lines,
    character_majors,
    filter_program,
)

DEVICES = "Character devices:\n  1 mem\n195 nvidia\n508 nvidia-uvm\n\nBlock devices:\n  8 sd\n"
WALL = DeviceWall(majors=(195, 508), given=((195, 2), (195, 255), (508, 0)))
CHARACTER, BLOCK = 2, 1
READS_AND_WRITES = 6

numbers = st.integers(min_value=0, max_value=520)
nodes = st.tuples(st.sampled_from([1, 195, 226, 508]), st.integers(min_value=0, max_value=300))
walls = st.builds(
    DeviceWall,
    majors=st.lists(st.sampled_from([195, 226, 508]), max_size=3).map(tuple),
    given=st.lists(nodes, max_size=40).map(tuple),
)


def answer(program: bytes, kind: int, major: int, minor: int) -> int:
    """What the kernel would do with the program: only the instructions that it may use."""
    call = struct.pack("<3I", READS_AND_WRITES << 16 | kind, major, minor)
    registers = [0] * 11
    at = 0
    while True:
        code, which, offset, value = struct.unpack_from("<BBhi", program, at * 8)
        register, source = which & 15, which >> 4
        at += 1
        match code:
            case 0x61:
                assert source == 1
                (registers[register],) = struct.unpack_from("<I", call, offset)
            case 0x57:
                registers[register] &= value
            case 0xB7:
                registers[register] = value
            case 0x05:
                at += offset
            case 0x15:
                at += offset if registers[register] == value else 0
            case 0x55:
                at += offset if registers[register] != value else 0
            case 0x95:
                return registers[0]
            case _:
                raise AssertionError(f"the kernel would not know {code:#x}")


@given(walls, nodes)
def test_the_program_lets_through_what_was_given_and_what_is_not_walled(
    wall: DeviceWall, node: tuple[int, int]
) -> None:
    allowed = node[0] not in wall.majors or node in wall.given

    assert answer(filter_program(wall), CHARACTER, *node) == allowed


@given(walls, nodes)
def test_disks_are_left_to_the_rights_of_their_files(
    wall: DeviceWall, node: tuple[int, int]
) -> None:
    assert answer(filter_program(wall), BLOCK, *node) == 1


@given(walls)
def test_every_instruction_can_be_reached_and_no_jump_leaves_the_program(wall: DeviceWall) -> None:
    program = filter_program(wall)

    reached = set[int]()
    ahead = [0]
    while ahead:
        at = ahead.pop()
        if at in reached:
            continue
        reached.add(at)
        code, _, offset, _ = struct.unpack_from("<BBhi", program, at * 8)
        if code in (0x05, 0x15, 0x55):
            ahead.append(at + 1 + offset)
        if code not in (0x05, 0x95):
            ahead.append(at + 1)

    assert reached == set(range(len(program) // 8))


def test_version_1_is_given_every_driver_but_those_that_are_walled_off() -> None:
    lines = allow_lines(WALL, inherited="a *:* rwm\n", devices=DEVICES)

    assert lines == ("b *:* rwm", "c 1:* rwm", "c 195:2 rw", "c 195:255 rw", "c 508:0 rw")


def test_in_a_container_nothing_is_asked_for_that_it_has_not_itself() -> None:
    inherited = "c *:* m\nb *:* m\nc 1:3 rwm\nc 195:255 rw\nc 195:2 rw\nc 136:* rwm\n"

    lines = allow_lines(WALL, inherited=inherited, devices=DEVICES)

    assert lines == (
        "c *:* m",
        "b *:* m",
        "c 1:3 rwm",
        "c 195:255 rw",
        "c 195:2 rw",
        "c 136:* rwm",
    )


@pytest.mark.parametrize("inherited", ["c *:* rwm\n", "c *:* rwm\nb *:* rwm\n"])
def test_every_driver_by_name_is_as_good_as_all(inherited: str) -> None:
    lines = allow_lines(WALL, inherited=inherited, devices=DEVICES)

    assert [line for line in lines if line.startswith("c ")] == [
        "c 1:* rwm",
        "c 195:2 rw",
        "c 195:255 rw",
        "c 508:0 rw",
    ]


def test_disks_are_no_character_devices() -> None:
    assert character_majors(DEVICES) == {"mem": 1, "nvidia": 195, "nvidia-uvm": 508}
