from bench.slurm.configuring import (
    BEST_PARAMETERS,
    Layout,
    Ports,
    gres_conf,
    mariadb_options,
    slurm_conf,
    slurmdbd_conf,
)

LAYOUT = Layout(
    folder="/srv/lab",
    machine="iron",
    ports=Ports(slurmctld=1001, slurmdbd=1002, mariadb=1003, slurmd=(2001, 2002)),
    gpus_per_node=8,
)


def test_every_node_has_its_own_port_on_loopback() -> None:
    lines = [line for line in slurm_conf(LAYOUT).splitlines() if line.startswith("NodeName=")]

    assert [line.split()[0] for line in lines] == ["NodeName=node1", "NodeName=node2"]
    assert all("NodeHostname=iron NodeAddr=127.0.0.1" in line for line in lines)
    assert ["Port=2001" in lines[0], "Port=2002" in lines[1]] == [True, True]
    assert all(line.endswith("Gres=gpu:a100:8") for line in lines)


def test_slurm_is_measured_with_the_settings_that_are_best_for_it() -> None:
    assert f"SchedulerParameters={BEST_PARAMETERS}\n" in slurm_conf(LAYOUT)


def test_no_setting_is_empty_because_slurm_would_refuse_the_file() -> None:
    for text in (slurm_conf(LAYOUT), slurmdbd_conf(LAYOUT)):
        assert all(line.partition("=")[2] for line in text.splitlines())


def test_the_gpus_are_files_of_the_laboratory() -> None:
    assert gres_conf(LAYOUT).splitlines() == [
        "AutoDetect=off",
        "NodeName=node1,node2 Name=gpu Type=a100 File=/srv/lab/dev/nvidia[0-7]",
    ]


def test_accounting_uses_the_ports_and_sockets_of_the_laboratory() -> None:
    conf = slurmdbd_conf(LAYOUT).splitlines()

    assert {"DbdPort=1002", "StoragePort=1003", f"AuthInfo={LAYOUT.munge_socket}"} <= set(conf)
    assert {"--port=1003", "--bind-address=127.0.0.1"} <= set(mariadb_options(LAYOUT))
