"""What the doctor finds, with back ends that are there, missing, and broken in the ways they break."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from arena import doctor
from arena.doctor import Check, Probe, examine, fits, requirements, run_probe, vllm_check

WELL = {
    "transformers": Probe({"versions": {"torch": "2.13.0", "transformers": "5.19.0"}, "gpus": []}),
    "vllm": Probe({"versions": {"vllm": "0.32.0"}, "device": "cpu"}),
    "openai": Probe({"versions": {"aiohttp": "3.14.5", "stamina": "26.1.0"}}),
}
MISSING = Probe(None, "ModuleNotFoundError: No module named 'torch'")
NMS = Probe(None, "RuntimeError: operator torchvision::nms does not exist")


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "nvidia_present", lambda: False)
    monkeypatch.setattr(doctor, "compiler_present", lambda: True)


def found(home: Path, probes: dict[str, Probe] = WELL, config_file: Path | None = None) -> dict[str, Check]:
    """Return the checks by name."""
    checks = examine(home=home, config_file=config_file, probe=probes.__getitem__)
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}


def test_all_is_well_where_all_is_well(tmp_path: Path) -> None:
    checks = found(tmp_path / "home")
    assert not [check for check in checks.values() if check.fails]
    assert checks["transformers"].found == "torch 2.13.0, transformers 5.19.0; computes on the processor"
    assert checks["vllm"].found == "vllm 0.32.0; computes on: cpu"
    assert checks["home"].found.endswith("home will be made") and not (tmp_path / "home").exists()


def test_a_back_end_that_is_not_installed_is_a_fault_where_it_is_needed_alone(tmp_path: Path) -> None:
    checks = found(tmp_path, {**WELL, "transformers": MISSING, "vllm": MISSING})
    needed, other = checks["transformers"], checks["vllm"]
    assert (needed.state, needed.found, needed.fails) == ("absent", "torch is not installed", True)
    assert needed.mend == "pip install 'evoke-arena[policy]'"
    assert (other.state, other.fails) == ("absent", False) and other.mend == "pip install 'evoke-arena[vllm]'"


def test_a_machine_with_a_gpu_is_told_of_its_own_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "nvidia_present", lambda: True)
    checks = found(tmp_path, {**WELL, "vllm": MISSING})
    assert checks["vllm"].mend == "pip install 'vllm==0.32.*'"
    assert "a GPU is there that torch does not see" in checks["transformers"].mend
    seen = Probe({"versions": {"torch": "2.13.0"}, "gpus": ["H200"]})
    assert found(tmp_path, {**WELL, "transformers": seen})["transformers"].found == "torch 2.13.0; GPU: H200"


def test_a_broken_companion_is_named_with_its_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_POLICY__BACKEND", "vllm")
    checks = found(tmp_path, {**WELL, "vllm": NMS})
    assert checks["vllm"].fails and checks["vllm"].state == "broken"
    assert checks["vllm"].found == "RuntimeError: operator torchvision::nms does not exist"
    assert (
        checks["vllm"].mend == "pip uninstall --yes torchvision torchaudio torchcodec: no policy needs them"
    )
    assert not checks["transformers"].needed


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    check = vllm_check(WELL["vllm"], needed=True)
    assert not check.fails and check.found.endswith("; no C++ compiler") and "install g++" in check.mend
    (tmp_path / "my++").touch(mode=0o755)
    monkeypatch.setenv("CXX", "my++")
    assert vllm_check(WELL["vllm"], needed=True).mend == ""


def test_an_import_is_tried_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vllm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')\n")
    (tmp_path / "aiohttp.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert run_probe("vllm") == NMS
    assert run_probe("openai") == Probe(None, "its import ended the process with 7")
    (tmp_path / "aiohttp.py").unlink()
    told = run_probe("openai").told
    assert told is not None and set(told["versions"]) == {"aiohttp", "stamina"}


def test_an_import_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vllm.py").write_text("import threading\nthreading.Event().wait()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(doctor, "IMPORT_TIMEOUT_S", 0.5)
    assert run_probe("vllm") == Probe(None, "its import did not end within 0.5 s")


def test_whether_there_is_a_key_is_told_and_never_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert found(tmp_path)["openai"].found.endswith("no key in OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    checks = found(tmp_path)
    assert checks["openai"].found.endswith("; a key in OPENAI_API_KEY")
    assert not any("sk-secret" in check.found + check.mend for check in checks.values())


def test_a_wrong_configuration_is_the_fault(tmp_path: Path) -> None:
    path = tmp_path / "arena.toml"
    path.write_text("[policy]\nbackend = 'abacus'\n")
    check = found(tmp_path, config_file=path)["configuration"]
    assert check.fails and "policy.backend: got 'abacus'" in check.found


def test_a_model_that_is_not_there_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_POLICY__MODEL", str(tmp_path / "nowhere"))
    check = found(tmp_path)["model"]
    assert check.fails and "allowed are tiny, smollm2 and folders" in check.found
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / "config.json").write_text("{}")
    assert found(tmp_path)["model"].state == "ok"


def test_a_server_that_does_not_answer_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_POLICY__BACKEND", "openai")
    monkeypatch.setenv("ARENA_POLICY__MODEL", "m@http://127.0.0.1:9")
    monkeypatch.setenv("ARENA_POLICY__OPENAI_ATTEMPTS", "1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    check = found(tmp_path)["model"]
    assert check.fails and "http://127.0.0.1:9/v1 cannot be reached" in check.found


def test_a_home_that_cannot_be_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check = found(tmp_path / "file" / "home")["home"]
    assert check.fails and "Not a directory" in check.found


def test_a_full_disk_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LOW_DISK_BYTES", 1 << 62)
    check = found(tmp_path)["disk"]
    assert check.fails and check.found.endswith("GiB free") and check.mend.startswith("make room")


def test_a_store_and_an_adapter_that_cannot_be_read_are_found(tmp_path: Path) -> None:
    assert (found(tmp_path)["store"].found, found(tmp_path)["adapters"].found) == (
        "none yet",
        "0 versions, 0 of them retired",
    )
    (tmp_path / "arena.db").write_text("this is no database, and long enough to be seen as none" * 20)
    (tmp_path / "adapters" / "red" / "1").mkdir(parents=True)
    checks = found(tmp_path)
    assert checks["store"].fails
    assert checks["adapters"].state == "broken" and "red@1" in checks["adapters"].found


def test_certificates_that_cannot_be_read_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_SERVER__TLS_CERT", str(tmp_path / "none.pem"))
    check = found(tmp_path)["server.tls_cert"]
    assert check.fails and check.found.endswith("none.pem cannot be read")


def test_packages_are_read_from_what_the_distribution_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = requirements(
        [
            "click>=8.1.7",
            "uvloop>=0.21; (sys_platform == 'nowhere') and extra == 'server'",
            "aiohttp>=3.14; extra == 'server'",
            "torch<2.14,>=2.11; extra == 'policy'",
            "evoke-arena[client]; extra == 'dev'",
        ]
    )
    assert asked == {
        "": {"click": ">=8.1.7"},
        "server": {"aiohttp": ">=3.14"},
        "policy": {"torch": "<2.14,>=2.11"},
    }
    versions = {"click": "8.0", "aiohttp": "3.14.5"}

    def version(name: str) -> str:
        if name not in versions:
            raise doctor.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor, "version", version)
    old, well, gone = (doctor.package_check(extra, asked[extra]) for extra in ("", "server", "policy"))
    assert old.fails and old.found == "click 8.0 where >=8.1.7 is needed"
    assert well.state == "ok" and well.found == "aiohttp 3.14.5"
    assert (gone.state, gone.fails, gone.found) == ("absent", False, "missing: torch")
    assert gone.mend == "pip install 'evoke-arena[policy]'"


@pytest.mark.parametrize(
    ("have", "allowed", "expected"),
    [
        ("2.13.0+cpu", ">=2.11,<2.14", True),
        ("2.14", ">=2.11,<2.14", False),
        ("2.14.0", "<2.14", False),
        ("2.9", ">=2.11", False),
        ("0.32.0", "==0.32.0", True),
        ("0.32", "==0.32.0", True),
        ("0.32.1", "==0.32.0", False),
        ("1.0rc1", ">=0.9", True),
        ("1.0", "", True),
        ("1.0", "~=9.0", True),
    ],
)
def test_versions_are_compared_by_number(have: str, allowed: str, expected: bool) -> None:
    assert fits(have, allowed) is expected


def test_the_command_tells_all_and_leaves_with_what_is_wrong(
    arena: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "run_probe", WELL.__getitem__)
    well = arena("doctor", "--home", tmp_path, "--json")
    assert well.exit_code == 0
    told = json.loads(well.stdout)
    assert told["ok"] is True
    assert all(
        set(check) == {"group", "name", "state", "found", "mend", "needed"} for check in told["checks"]
    )
    monkeypatch.setattr(doctor, "run_probe", {**WELL, "transformers": MISSING}.__getitem__)
    ill = arena("doctor", "--home", tmp_path)
    assert ill.exit_code == 1
    assert "BROKEN transformers: torch is not installed\n         mend: pip install" in ill.stdout
    assert "1 of what the configuration needs does not work" in ill.stdout
    assert json.loads(arena("doctor", "--home", tmp_path, "--json").stdout)["ok"] is False
