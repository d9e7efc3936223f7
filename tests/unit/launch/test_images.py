import pytest

from muster.launch.images import for_pyxis, reference


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("ubuntu:22.04", "ubuntu:22.04"),
        ("docker://pytorch/pytorch:2.5", "pytorch/pytorch:2.5"),
        ("nvcr.io#nvidia/pytorch:24.01-py3", "nvcr.io/nvidia/pytorch:24.01-py3"),
        ("$oauthtoken@nvcr.io#nvidia/pytorch", "nvcr.io/nvidia/pytorch"),
        ("/images/run#2.sif", "/images/run#2.sif"),
    ],
)
def test_an_image_as_docker_spells_it(said: str, meant: str) -> None:
    assert reference(said) == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("ubuntu:22.04", "ubuntu:22.04"),
        ("ubuntu@sha256:0a", "ubuntu@sha256:0a"),
        ("pytorch/pytorch:2.5", "pytorch/pytorch:2.5"),
        ("docker.io/pytorch/pytorch", "pytorch/pytorch"),
        ("nvcr.io/nvidia/pytorch:24.01-py3", "nvcr.io#nvidia/pytorch:24.01-py3"),
        ("docker://nvcr.io/nvidia/pytorch", "nvcr.io#nvidia/pytorch"),
        ("nvcr.io#nvidia/pytorch", "nvcr.io#nvidia/pytorch"),
        ("ann@nvcr.io/nvidia/pytorch", "ann@nvcr.io#nvidia/pytorch"),
        ("localhost/mine", "localhost#mine"),
        ("here:5000/mine@sha256:0a", "here:5000#mine@sha256:0a"),
        ("podman://mine", "podman://mine"),
        ("/images/torch.sqsh", "/images/torch.sqsh"),
        ("./torch.sqsh", "./torch.sqsh"),
    ],
)
def test_an_image_as_enroot_spells_it(said: str, meant: str) -> None:
    assert for_pyxis(said) == meant
