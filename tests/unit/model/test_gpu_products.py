import pytest

from muster.model.gpu_products import memory_of, model_of, sizes_of
from muster.model.mig import GEOMETRIES, Geometry
from muster.model.value import GpuModel


@pytest.mark.parametrize(
    ("product", "memory_mib", "model"),
    [
        ("NVIDIA A100-SXM4-40GB", 40_960, "A100-40GB"),
        ("NVIDIA A100-SXM4-40GB", 40_536, "A100-40GB"),
        ("NVIDIA A100-PCIE-40GB", 40_960, "A100-40GB"),
        ("A100-SXM4-40GB", 40_536, "A100-40GB"),
        ("NVIDIA A100-SXM4-80GB", 81_920, "A100-80GB"),
        ("NVIDIA A100 80GB PCIe", 81_920, "A100-80GB"),
        ("NVIDIA A100-SXM-64GB", 65_536, "A100-64GB"),
        ("NVIDIA A10", 23_028, "A10-24GB"),
        ("NVIDIA A10G", 23_028, "A10G-24GB"),
        ("NVIDIA A30", 24_576, "A30-24GB"),
        ("NVIDIA A40", 46_068, "A40-48GB"),
        ("NVIDIA B200", 183_359, "B200-180GB"),
        ("NVIDIA GB200", 189_471, "GB200-186GB"),
        ("NVIDIA GH200 480GB", 97_871, "GH200-96GB"),
        ("NVIDIA GH200 144G HBM3e", 146_831, "GH200-144GB"),
        ("NVIDIA H100 80GB HBM3", 81_559, "H100-80GB"),
        ("NVIDIA H100 PCIe", 81_559, "H100-80GB"),
        ("NVIDIA H100 NVL", 95_830, "H100-94GB"),
        ("NVIDIA H200", 143_771, "H200-141GB"),
        ("NVIDIA H200 NVL", 143_771, "H200-141GB"),
        ("NVIDIA L4", 23_034, "L4-24GB"),
        ("NVIDIA L40S", 46_068, "L40S-48GB"),
        ("NVIDIA RTX A6000", 49_140, "A6000-48GB"),
        ("NVIDIA RTX A6000", 46_068, "A6000-48GB"),
        ("NVIDIA RTX 6000 Ada Generation", 49_140, "RTX6000-Ada-48GB"),
        ("NVIDIA GeForce RTX 4090", 24_564, "RTX4090-24GB"),
        ("NVIDIA GeForce RTX 3080", 10_240, "RTX3080-10GB"),
        ("NVIDIA GeForce RTX 5090", 32_607, "RTX5090-32GB"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 16_376, "RTX4070-Ti-SUPER-16GB"),
        ("Tesla T4", 15_360, "T4-16GB"),
        ("Tesla V100-SXM2-32GB", 32_768, "V100-32GB"),
        ("Tesla V100-SXM2-16GB", 16_160, "V100-16GB"),
        ("Tesla P100-PCIE-16GB", 16_280, "P100-16GB"),
        ("Quadro RTX 8000", 46_080, "RTX8000-48GB"),
    ],
)
def test_a_product_name_becomes_a_model(product: str, memory_mib: int, model: str) -> None:
    assert model_of(product, memory_mib) == model


def test_a_product_without_a_name_is_still_a_gpu() -> None:
    assert model_of("NVIDIA Graphics Device", 24_564) == "GPU-24GB"


def test_every_model_that_can_be_cut_has_a_known_memory() -> None:
    least = {
        name: max(each.memory_mib for each in cut.profiles) for name, cut in GEOMETRIES.items()
    }

    short = [name for name in least if (memory_of(name) or 0) < least[name]]

    assert short == []


def test_a_model_of_a_known_size_has_that_memory() -> None:
    assert memory_of(GpuModel("X9000-100GB")) == 102_400
    assert memory_of(GpuModel("X9000")) is None


def test_a_family_knows_its_sizes() -> None:
    assert sizes_of("A100") == ("A100-40GB", "A100-80GB")
    assert sizes_of("X9000") == ()


@pytest.mark.parametrize("cut", GEOMETRIES.values(), ids=lambda cut: cut.model)
def test_a_model_that_can_be_cut_is_recognised_by_its_product(cut: Geometry) -> None:
    family, whole = cut.model.rpartition("-")[0], cut.profiles[-1]

    assert model_of(f"NVIDIA {family} SXM6 AC", whole.memory_mib) == cut.model
    assert cut.model in sizes_of(family)
