"""What the kernel writes about groups and processes, read (pure)."""

from collections.abc import Mapping

from muster.model.samples import Pressure


def keyed(text: str) -> dict[str, int]:
    """`usage_usec 12` line by line: cpu.stat, memory.stat, and /proc/PID/io with its colons."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        words = line.replace(":", " ").split()
        if len(words) == 2 and words[1].isdecimal():
            found[words[0]] = int(words[1])
    return found


def number(text: str) -> int | None:
    """A file with one number in it; `max`, and a file that is not there, are none."""
    text = text.strip()
    return int(text) if text.isdecimal() else None


def waited_milli(text: str) -> int | None:
    """How much of the last ten seconds somebody waited: `some avg10=1.25 ...`."""
    for line in text.splitlines():
        if line.startswith("some "):
            words = _named(line)
            return min(1_000, round(10 * float(words["avg10"]))) if "avg10" in words else None
    return None


def pressure(texts: Mapping[str, str]) -> Pressure:
    """By what is waited for: cpu, memory, io."""
    return Pressure(
        cpu_milli=waited_milli(texts.get("cpu", "")),
        memory_milli=waited_milli(texts.get("memory", "")),
        io_milli=waited_milli(texts.get("io", "")),
    )


def transferred(io_stat: str) -> tuple[int, int] | None:
    """Bytes read and written over all disks: `8:0 rbytes=1 wbytes=2 ...`."""
    read = written = None
    for line in io_stat.splitlines():
        words = _named(line)
        read = (read or 0) + int(words.get("rbytes", "0"))
        written = (written or 0) + int(words.get("wbytes", "0"))
    return None if read is None or written is None else (read, written)


def state_and_ticks(stat: str) -> tuple[str, int] | None:
    """What a process or thread does, and its CPU time in ticks: /proc/PID/stat.

    Its name comes in parentheses and may have spaces and parentheses itself.
    """
    words = stat.rpartition(")")[2].split()
    return (words[0], int(words[11]) + int(words[12])) if len(words) > 12 else None


def busy_ticks(stat: str) -> int | None:
    """Of all CPUs together, what went into anything but waiting: the first line of /proc/stat."""
    words = stat.partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu":
        return None
    user, nice, system, _idle, _io_wait, irq, soft_irq, steal = (int(word) for word in words[1:9])
    return user + nice + system + irq + soft_irq + steal


def memory_bytes(meminfo: str) -> dict[str, int]:
    """`MemTotal: 16 kB` line by line."""
    found: dict[str, int] = {}
    for line in meminfo.splitlines():
        name, _, size = line.partition(":")
        words = size.split()
        if len(words) == 2 and words[0].isdecimal() and words[1] == "kB":
            found[name] = 1_024 * int(words[0])
    return found


def network_bytes(net_dev: str) -> tuple[int, int] | None:
    """Received and sent over all interfaces but the machine's own loop: /proc/net/dev."""
    received = sent = None
    for line in net_dev.splitlines():
        name, colon, counts = line.partition(":")
        words = counts.split()
        if not colon or name.strip() == "lo" or len(words) < 9:
            continue
        received, sent = (received or 0) + int(words[0]), (sent or 0) + int(words[8])
    return None if received is None or sent is None else (received, sent)


def _named(line: str) -> dict[str, str]:
    """`some avg10=1.25 total=7`: by name, without the first word."""
    pairs = (word.partition("=") for word in line.split()[1:])
    return {name: value for name, _, value in pairs}
