"""Has a real Kubernetes answer a session, and writes down what it says.

    cd tests && ../.venv/bin/python -m doors.kubernetes.record NAME

A control plane is started for it, of what `make kubernetes` built, and ended afterwards. It has no
nodes: sessions about what runs on some are recorded elsewhere. Answers that are there are replaced.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from doors.kubernetes.cluster import KubernetesHouse, Ran
from doors.kubernetes.sessions import SESSIONS, read
from kubernetes_real.lab import laboratory

ANSWERS = frozenset(">!=")


def recorded(path: Path, house: KubernetesHouse) -> str:
    """The session with the answers of this house."""
    for file, lines in read(path).files.items():
        (house.work / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    written: list[str] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        if text[:1] in ANSWERS:
            continue
        written.append(text)
        match text[:1]:
            case "$":
                written += _answer(house.shell(text[2:]))
            case "%":
                ran = house.shell(text[2:])
                assert ran.code == 0, f"{text}: {ran.out}{ran.err}"
            case "~":
                while house.shell(text[2:]).code:
                    pass
            case _:
                pass
    return "\n".join(written) + "\n"


def _answer(ran: Ran) -> list[str]:
    out = [f"> {line}".rstrip() for line in ran.out.splitlines()]
    err = [f"! {line}".rstrip() for line in ran.err.splitlines()]
    return [*out, *err, *([f"= {ran.code}"] if ran.code else [])]


def main() -> None:
    path = SESSIONS / f"{sys.argv[1]}.txt"
    with tempfile.TemporaryDirectory() as folder, laboratory(nodes=0) as lab:
        house = KubernetesHouse(root=Path(folder))
        house.work.mkdir()
        config = (house.root / "kubeconfig", lab.kubeconfig.read_bytes())
        config[0].write_bytes(config[1])
        said = recorded(path, house)
        path.write_text(said.replace(str(lab.server), "https://SERVER"), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except subprocess.TimeoutExpired as slow:
        sys.exit(f"it takes too long: {slow.cmd}")
