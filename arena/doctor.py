"""What works here and what does not: the checks behind `arena doctor`.

A heavy package is imported in a process of its own, because what is installed need not import: a companion built for
another version breaks a package that is fine by itself. Nothing is changed, and nothing is sent anywhere but to a
server of models that the configuration names.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, Literal

from agents.errors import PolicyError
from agents.policy.chat import one_line
from agents.policy.settings import PolicySettings
from games.errors import ArenaError

State = Literal["ok", "absent", "broken"]
"""`absent` is not installed, which is no fault; `broken` is there and does not work."""

DISTRIBUTION = "evoke-arena"
EXTRAS = ("server", "client", "watch", "policy", "openai")
IMPORT_TIMEOUT_S = 180.0
LOW_DISK_BYTES = 1 << 30

PROBES = {
    "transformers": """
import json, torch, transformers, tokenizers, safetensors, peft
gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps({"versions": {m.__name__: m.__version__ for m in (torch, transformers, peft)}, "gpus": gpus}))
""",
    "vllm": """
import json, vllm
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.platforms import current_platform
print(json.dumps({"versions": {"vllm": vllm.__version__}, "device": current_platform.device_type}))
""",
    "openai": """
import json, aiohttp, stamina
from importlib.metadata import version
print(json.dumps({"versions": {name: version(name) for name in ("aiohttp", "stamina")}}))
""",
}
"""What each back end imports, and what it tells of it, as JSON in its last line."""

COMPANIONS = ("torchvision", "torchaudio", "torchcodec")
"""Packages that come with vLLM for processors, fit other versions of torch, and are needed by no policy."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Args:
        group: what it belongs to, for people.
        name: stable, for programs.
        state: how it is.
        found: in one line, what there is.
        mend: what to do about it; empty where nothing need be done.
        needed: whether the configuration needs it to be `ok`.
    """

    group: str
    name: str
    state: State
    found: str
    mend: str = ""
    needed: bool = False

    @property
    def fails(self) -> bool:
        """Whether something that the configuration needs does not work."""
        return self.needed and self.state != "ok"


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of importing a back end: what it told, or the last line of its error."""

    told: dict[str, Any] | None
    error: str = ""


RunProbe = Callable[[str], Probe]


def run_probe(name: str) -> Probe:
    """Import what the back end `name` needs, in a process of its own."""
    environment = {**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROBES[name]],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=IMPORT_TIMEOUT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Probe(None, f"its import did not end within {IMPORT_TIMEOUT_S:g} s")
    if done.returncode == 0:
        return Probe(json.loads(done.stdout.splitlines()[-1]))
    errors = [line for line in done.stderr.splitlines() if re.match(r"[A-Za-z_.]+(Error|Exception)\b", line)]
    last = errors[-1] if errors else f"its import ended the process with {done.returncode}"
    return Probe(None, one_line(Exception(last)))


def examine(
    *, home: Path | None = None, config_file: Path | None = None, probe: RunProbe = run_probe
) -> list[Check]:
    """Return all checks, those of the machine first.

    Args:
        home: as `--home` gives it; None is what the configuration says.
        config_file: as `--config` gives it.
        probe: imports a back end.
    """
    from arena.config import load

    checks = [python_check(), *package_checks()]
    try:
        loaded = load(file=config_file, flags={"home": home})
    except ArenaError as error:
        broken = Check(
            "configuration", "configuration", "broken", str(error), "correct it there", needed=True
        )
        return [*checks, *engine_checks(PolicySettings(), probe=probe), broken]
    settings = loaded.settings
    checks += engine_checks(settings.policy, probe=probe)
    checks += model_checks(settings.policy, home=settings.home)
    checks.append(Check("configuration", "configuration", "ok", _origins(loaded.origins)))
    checks += tls_checks(settings.server.tls_cert, settings.server.tls_key)
    return [*checks, *home_checks(settings.home)]


def python_check() -> Check:
    """Return the check of the interpreter, with what machine it runs on."""
    from arena.config import processors

    found = (
        f"{platform.python_version()} on {platform.system()} {platform.machine()}, {processors()} processors"
    )
    return Check("machine", "python", "ok", found)


def package_checks() -> list[Check]:
    """Return a check for each of the project's extras: which of its packages are missing or too old."""
    try:
        own = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        mend = "pip install --editable . in its folder"
        return [Check("packages", DISTRIBUTION, "ok", "runs from a source folder, not installed", mend)]
    asked = requirements(own.requires or ())
    stale = ", ".join(extra for extra in EXTRAS if extra not in asked)
    mend = f"pip install --editable . again: what is installed does not know of {stale}" if stale else ""
    checks = [Check("packages", DISTRIBUTION, "ok", own.version, mend)]
    return checks + [package_check(extra, asked[extra]) for extra in ("", *EXTRAS) if extra in asked]


def requirements(lines: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return, by extra (`""` for what is always needed), the packages and the versions that are asked for."""
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        spec, _, marker = line.partition(";")
        named = re.match(r"\s*([A-Za-z0-9._-]+)(\[[^\]]*\])?\s*\(?([^)]*)\)?", spec)
        extra = re.search(r"extra == ['\"]([^'\"]+)", marker)
        elsewhere = re.search(r"sys_platform == ['\"]([^'\"]+)", marker)
        if named is None or named[1] == DISTRIBUTION or (elsewhere and elsewhere[1] != sys.platform):
            continue
        found.setdefault(extra[1] if extra else "", {})[named[1]] = named[3].strip()
    return found


def package_check(extra: str, asked: dict[str, str]) -> Check:
    """Return the check of one extra's packages."""
    there, missing, wrong = [], [], []
    for name, allowed in sorted(asked.items()):
        try:
            have = version(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        there.append(f"{name} {have}")
        if not fits(have, allowed):
            wrong.append(f"{name} {have} where {allowed} is needed")
    state: State = "broken" if wrong or (missing and not extra) else "absent" if missing else "ok"
    parts = [*wrong, *([f"missing: {', '.join(missing)}"] if missing else [])]
    found = "; ".join(parts) if parts else ", ".join(there)
    name = f"extra {extra}" if extra else "always needed"
    suffix = f"[{extra}]" if extra else ""
    mend = "" if state == "ok" else f"pip install '{DISTRIBUTION}{suffix}'"
    return Check("packages", name, state, found, mend, needed=not extra)


def fits(have: str, allowed: str) -> bool:
    """Whether a version is within bounds such as `>=2.11,<2.14`; other operators than `>=`, `<` and `==` allow all."""
    ours = _numbers(have)
    for bound in allowed.split(","):
        match = re.fullmatch(r"\s*(>=|<|==)\s*([0-9][0-9.]*)\s*", bound)
        if match is None:
            continue
        theirs = _numbers(match[2])
        width = max(len(ours), len(theirs))
        left, right = (numbers + (0,) * (width - len(numbers)) for numbers in (ours, theirs))
        if not {">=": left >= right, "<": left < right, "==": left == right}[match[1]]:
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[^0-9.]", text)[0]))


def engine_checks(policy: PolicySettings, *, probe: RunProbe) -> list[Check]:
    """Return a check for each back end; the configured one is needed."""
    return [
        transformers_check(probe("transformers"), needed=policy.backend == "transformers"),
        vllm_check(probe("vllm"), needed=policy.backend == "vllm"),
        openai_check(probe("openai"), key_env=policy.openai_key_env, needed=policy.backend == "openai"),
    ]


def transformers_check(probe: Probe, *, needed: bool) -> Check:
    """Return what an import of transformers means."""
    if probe.told is None:
        return _failed("transformers", probe, f"pip install '{DISTRIBUTION}[policy]'", needed=needed)
    gpus = probe.told["gpus"]
    found = f"{_versions(probe)}; {'GPU: ' + ', '.join(gpus) if gpus else 'computes on the processor'}"
    mend = ""
    if not gpus and nvidia_present():
        mend = "a GPU is there that torch does not see: install a build of torch for it, or mend its driver"
    return Check("back ends", "transformers", "ok", found, mend, needed)


def vllm_check(probe: Probe, *, needed: bool) -> Check:
    """Return what an import of vLLM means."""
    if probe.told is None:
        install = "pip install 'vllm==0.32.*'" if nvidia_present() else f"pip install '{DISTRIBUTION}[vllm]'"
        return _failed("vllm", probe, install, needed=needed)
    found = f"{_versions(probe)}; computes on: {probe.told['device']}"
    mend = ""
    if not compiler_present():
        found += "; no C++ compiler"
        mend = "vllm may compile a part of itself at its first use: if it does not start, install g++"
    return Check("back ends", "vllm", "ok", found, mend, needed)


def openai_check(probe: Probe, *, key_env: str, needed: bool) -> Check:
    """Return what an import of the HTTP client means, and whether there is a key. The key itself is not looked at."""
    if probe.told is None:
        return _failed("openai", probe, f"pip install '{DISTRIBUTION}[openai]'", needed=needed)
    key = f"a key in {key_env}" if os.environ.get(key_env) else f"no key in {key_env}"
    return Check("back ends", "openai", "ok", f"{_versions(probe)}; {key}", needed=needed)


def _failed(name: str, probe: Probe, install: str, *, needed: bool) -> Check:
    missing = re.search(r"No module named '([A-Za-z0-9_]+)", probe.error)
    if missing is not None:
        return Check("back ends", name, "absent", f"{missing[1]} is not installed", install, needed)
    mend = f"{install}, in a fresh environment if that does not help"
    if any(companion in probe.error for companion in COMPANIONS):
        mend = f"pip uninstall --yes {' '.join(COMPANIONS)}: no policy needs them"
    return Check("back ends", name, "broken", probe.error, mend, needed)


def _versions(probe: Probe) -> str:
    assert probe.told is not None
    return ", ".join(f"{name} {number}" for name, number in probe.told["versions"].items())


def nvidia_present() -> bool:
    """Whether the system has an NVIDIA GPU, whatever torch sees of it."""
    return Path("/proc/driver/nvidia/gpus").is_dir() or shutil.which("nvidia-smi") is not None


def compiler_present() -> bool:
    """Whether there is a C++ compiler, where torch looks for one."""
    usual = "clang++" if sys.platform == "darwin" else "g++"
    return shutil.which(os.environ.get("CXX") or usual) is not None


def model_checks(policy: PolicySettings, *, home: Path) -> list[Check]:
    """Return the check of the configured model: its files, or the server that has it."""
    if policy.backend == "openai":
        return [_server_check(policy)]
    from agents.policy.presets import SMOLLM2, SMOLLM2_INSTALL, SMOLLM2_PACKAGE, find_model
    from agents.policy.service import MODELS_FOLDER

    cached = (home / MODELS_FOLDER / SMOLLM2.name).is_dir()
    if policy.model == SMOLLM2.name and not cached:
        state, found, mend = _wheel(SMOLLM2_PACKAGE, SMOLLM2_INSTALL)
        return [Check("policy", "model", state, found, mend, needed=True)]
    try:
        folder = find_model(policy.model, cache=home / MODELS_FOLDER)
    except PolicyError as error:
        return [Check("policy", "model", "broken", str(error), "set policy.model", needed=True)]
    if not (folder / "config.json").is_file():
        mend = "arena policy pretrain makes it" if policy.model == "tiny" else "set policy.model"
        return [Check("policy", "model", "broken", f"{folder} holds no config.json", mend, needed=True)]
    return [Check("policy", "model", "ok", f"{policy.model}: {folder}", needed=True)]


def _wheel(package: str, install: str) -> tuple[State, str, str]:
    from importlib.util import find_spec

    missing = [name for name in (package, "gguf") if find_spec(name) is None]
    if missing:
        return "absent", f"smollm2: {', '.join(missing)} is not installed", install
    return "ok", f"smollm2: in the wheel {package}, converted at its first use", ""


def _server_check(policy: PolicySettings) -> Check:
    """Ask the configured server what it serves."""
    import asyncio

    from agents.policy.service import make_engine
    from agents.policy.spec import POLICY, parse_spec

    async def ask() -> str:
        engine = make_engine(parse_spec(POLICY), policy, policy.model)
        try:
            await engine.start()
            return engine.model
        finally:
            await engine.close()

    try:
        found = asyncio.run(ask())
    except ArenaError as error:
        return Check(
            "policy", "model", "broken", str(error), "start the server, or set policy.model", needed=True
        )
    return Check("policy", "model", "ok", found, needed=True)


def tls_checks(certificate: Path | None, key: Path | None) -> list[Check]:
    """Return checks of the files that `arena serve` would load."""
    checks = []
    for name, path in (("server.tls_cert", certificate), ("server.tls_key", key)):
        if path is not None:
            there = os.access(path, os.R_OK) and path.is_file()
            found = str(path) if there else f"{path} cannot be read"
            mend = "" if there else f"set {name} to a file that can be read"
            checks.append(Check("configuration", name, "ok" if there else "broken", found, mend, needed=True))
    return checks


def home_checks(home: Path) -> list[Check]:
    """Return checks of the state's directory: it can be written, has room, and its store and adapters can be read."""
    place = next(path for path in (home, *home.absolute().parents) if path.exists())
    where = str(home) if home.exists() else f"{home} will be made"
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        found = f"{place}: {error.strerror or error}"
        return [
            Check("state", "home", "broken", found, "set --home to a folder that can be written", needed=True)
        ]
    checks = [Check("state", "home", "ok", where, needed=True)]
    free = shutil.disk_usage(place).free
    low = free < LOW_DISK_BYTES
    room, mend = f"{free / 2**30:.1f} GiB free", "make room: records are written as matches are played"
    checks.append(Check("state", "disk", "broken" if low else "ok", room, mend if low else "", needed=True))
    if home.is_dir():
        checks += [_store_check(home), _adapters_check(home)]
    return checks


def _store_check(home: Path) -> Check:
    from arena.store import FILE_NAME, Store

    if not (home / FILE_NAME).is_file():
        return Check("state", "store", "ok", "none yet", needed=True)
    try:
        with Store(home, create=False) as store:
            count = len(store.rated_matches())
    except ArenaError as error:
        return Check("state", "store", "broken", str(error), "restore it, or set --home", needed=True)
    return Check("state", "store", "ok", f"{FILE_NAME}, {count} rated matches", needed=True)


def _adapters_check(home: Path) -> Check:
    from agents.policy.adapters import FOLDER, AdapterStore

    try:
        adapters = AdapterStore(home / FOLDER).all()
    except (PolicyError, OSError) as error:
        return Check("state", "adapters", "broken", one_line(error), f"mend or remove it in {home / FOLDER}")
    for adapter in adapters:
        if adapter.problem:
            return Check(
                "state", "adapters", "broken", adapter.problem, f"mend or remove it in {home / FOLDER}"
            )
    retired = sum(adapter.retired for adapter in adapters)
    return Check("state", "adapters", "ok", f"{len(adapters)} versions, {retired} of them retired")


def _origins(origins: dict[str, str]) -> str:
    counted = sorted(
        {origin.partition(" ")[0] + " " + origin.partition(" ")[2] for origin in origins.values()}
    )
    return f"{len(origins)} values set, by {', '.join(counted)}" if origins else "all defaults"
