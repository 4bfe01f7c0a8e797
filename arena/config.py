"""Configuration: a TOML file, then the environment, then flags; the later wins.

Environment variables are `ARENA_SECTION__KEY`, as in `ARENA_TOURNAMENT__CONCURRENCY`; `home`, which is in no
section, is `ARENA_HOME`. Every value knows where it came from.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings.exceptions import SettingsError

from agents.match import DEFAULT_DEADLINE_S
from agents.policy.settings import PolicySettings
from arena.errors import ConfigError
from games.referee import DEFAULT_RETRIES

FILE_NAME = "arena.toml"
ENV_PREFIX = "ARENA_"
MAX_CONCURRENCY = 1024

_IN_TOML = {
    "dict_type": "it should be a table",
    "model_type": "it should be a table",
    "path_type": "it should be a path in quotation marks",
    "string_type": "it should be text in quotation marks",
}
"""Pydantic speaks of Python's types; who writes TOML does not know them."""


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class TournamentSettings(BaseModel):
    """How tournaments are run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    concurrency: int = Field(
        default_factory=processors,
        ge=1,
        le=MAX_CONCURRENCY,
        description="Processes that play matches; by default as many as there are processors.",
    )


class MatchSettings(BaseModel):
    """How a match is refereed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    retries: int = Field(
        default=DEFAULT_RETRIES,
        ge=0,
        le=10,
        description="How often an illegal or unreadable answer is asked again within one turn.",
    )
    deadline_s: float = Field(
        default=DEFAULT_DEADLINE_S,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds that a seat has for one turn, retries included; bots have no clock.",
    )


class ServerSettings(BaseModel):
    """How `arena serve` hosts. Times are in seconds; a rate allows so many a second and five times as many at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="The address to listen on; by default this machine alone.",
    )
    port: int = Field(
        default=8420, ge=0, le=65_535, description="The port for agents and spectators; 0 takes a free one."
    )
    http_port: int = Field(
        default=8421, ge=0, le=65_535, description="The port for pages, REST and metrics; 0 takes a free one."
    )
    tls_cert: Path | None = Field(
        default=None, description="A certificate (PEM, with its chain); all ports then speak TLS."
    )
    tls_key: Path | None = Field(
        default=None, description="The certificate's key (PEM), where it is in a file of its own."
    )
    anonymous: tuple[Literal["play", "watch"], ...] | None = Field(
        default=None,
        description="What needs no token: play, watch. By default both on this machine alone, and watch elsewhere.",
    )
    origins: tuple[str, ...] = Field(
        default=(),
        description="Origins whose pages may connect, such as https://example.org; programs send none.",
    )
    deadline_s: float = Field(
        default=DEFAULT_DEADLINE_S,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds a seat has for one turn.",
    )
    bank_s: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds a seat may overdraw its deadlines, in a match.",
    )
    grace_s: float = Field(
        default=30.0,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds after a lost connection until the seat forfeits.",
    )
    fill_after_s: float = Field(
        default=10.0,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds until a lobby fills up with bots.",
    )
    fill_with: str = Field(default="scripted", min_length=1, description="The bot that fills lobbies.")
    delay_s: float = Field(
        default=0.0,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds by which spectators see everything later.",
    )
    heartbeat_s: float = Field(
        default=20.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds within which a connection that is gone is noticed.",
    )
    max_connections: int = Field(default=5000, ge=1, description="Connections at the same time.")
    max_connections_per_address: int = Field(
        default=256, ge=1, description="Connections of one address at the same time."
    )
    max_matches: int = Field(default=1000, ge=1, description="Matches at the same time.")
    max_lobbies: int = Field(default=200, ge=1, description="Lobbies that wait at the same time.")
    max_watchers: int = Field(default=5000, ge=1, description="Spectators at the same time.")
    max_behind: int = Field(
        default=1024,
        ge=1,
        description="Entries a spectator may fall behind before it starts over from a snapshot.",
    )
    messages_per_s: float = Field(
        default=100.0,
        gt=0,
        allow_inf_nan=False,
        description="Messages a second of one connection, token or address.",
    )
    joins_per_s: float = Field(
        default=5.0,
        gt=0,
        allow_inf_nan=False,
        description="Requests for seats a second of one token or address.",
    )
    connects_per_s: float = Field(
        default=20.0, gt=0, allow_inf_nan=False, description="New connections a second of one address."
    )
    requests_per_s: float = Field(
        default=20.0, gt=0, allow_inf_nan=False, description="HTTP requests a second of one token or address."
    )


def _expanded(path: Path) -> Path:
    return path.expanduser()


class Settings(BaseSettings):
    """The whole configuration."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix=ENV_PREFIX, env_nested_delimiter="__", env_ignore_empty=True
    )

    home: Annotated[Path, AfterValidator(_expanded)] = Field(
        default=Path("arena-data"),
        description="The directory that holds the state: the store and the records.",
    )
    tournament: TournamentSettings = Field(default_factory=TournamentSettings)
    match: MatchSettings = Field(default_factory=MatchSettings)
    policy: PolicySettings = Field(default_factory=PolicySettings)
    server: ServerSettings = Field(default_factory=ServerSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read nothing but what `load` hands over, so that every value has a known origin."""
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and for each (`section.key`) where its value came from."""

    settings: Settings
    origins: dict[str, str]

    def rows(self) -> list[tuple[str, Any, str, str]]:
        """Return (key, value, origin, description) of every setting."""
        found: list[tuple[str, Any, str, str]] = []
        for name, value, description in walk(self.settings):
            found.append((name, value, self.origins.get(name, "default"), description))
        return found


def walk(model: BaseModel, prefix: str = "") -> Iterable[tuple[str, Any, str]]:
    """Yield (dotted key, value, description) of every leaf of a settings model."""
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from walk(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value, info.description or ""


def load(*, file: Path | None = None, flags: Mapping[str, Any] | None = None) -> Loaded:
    """Return the configuration.

    Args:
        file: a TOML file; None takes `arena.toml` in the current folder, where there is one.
        flags: values by dotted key, as in `tournament.concurrency`; those that are None were not given.

    Raises `ConfigError` in one line.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    path = Path(FILE_NAME) if file is None and Path(FILE_NAME).is_file() else file
    if path is not None:
        _merge(values, read_toml(path), origins, f"file {path}")
    try:
        _check_sections(os.environ)
        _merge(values, EnvSettingsSource(Settings)(), origins, "environment")
    except SettingsError as error:
        raise ConfigError(f"environment: {str(error)[:200]}") from None
    for key, value in (flags or {}).items():
        if value is not None:
            nested: dict[str, Any] = {key.rpartition(".")[2]: value}
            if "." in key:
                nested = {key.partition(".")[0]: nested}
            _merge(values, nested, origins, f"flag --{key.rpartition('.')[2].replace('_', '-')}")
    for key, origin in origins.items():
        if origin == "environment":
            origins[key] = f"environment {ENV_PREFIX}{key.upper().replace('.', '__')}"
    try:
        return Loaded(Settings(**values), origins)
    except ValidationError as error:
        raise ConfigError(explain(error, Settings, where=origins)) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file's content. Raises `ConfigError` in one line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the file: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: cannot read the file: it is no UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        raise ConfigError(f"{path}: no valid TOML: {message[:1].lower()}{message[1:]}") from None


def explain(error: ValidationError, model: type[BaseModel], *, where: str | Mapping[str, str]) -> str:
    """Return the first thing that is wrong as one line: where, which key, the value, what is allowed."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    origin = where if isinstance(where, str) else _origin(where, key)
    if first["type"] == "extra_forbidden":
        allowed = _fields_at(model, first["loc"][:-1])
        name = str(first["loc"][-1])
        return (
            f"{origin}: unknown key {key!r}{did_you_mean(name, allowed)}; allowed are: {', '.join(allowed)}"
        )
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "missing":
        return f"{origin}: {key} is missing"
    message = _IN_TOML.get(str(first["type"]), message)
    if message.startswith("Input should be "):
        message = f"it should be {message.removeprefix('Input should be ')}"
    if not key:
        return f"{origin}: {message}"
    return f"{origin}: {key}: got {_shown(first.get('input'))}, {message}"


def _shown(value: Any) -> str:
    """Return a value as TOML would have it, shortened; one from a flag or a file is not always text."""
    return repr(value[:80]) if isinstance(value, str) else repr(value)[:80]


def _check_sections(environment: Iterable[str]) -> None:
    """Raise `ConfigError` for a variable of a section that does not exist, which nothing would ever read."""
    sections = [name for name in Settings.model_fields if name != "home"]
    for variable in sorted(environment):
        section, between, _ = variable.upper().removeprefix(ENV_PREFIX).partition("__")
        if variable.upper().startswith(ENV_PREFIX) and between and section.lower() not in sections:
            raise ConfigError(
                f"environment {variable}: unknown section {section.lower()!r}"
                f"{did_you_mean(section.lower(), sections)}; allowed are: {', '.join(sections)}"
            )


def _origin(origins: Mapping[str, str], key: str) -> str:
    """Return where a key comes from; that of an unknown section is where its keys come from."""
    inside = (origin for name, origin in origins.items() if name.startswith(f"{key}."))
    return origins.get(key) or next(inside, "configuration")


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)`, or nothing where no name is near."""
    near = get_close_matches(name, list(allowed), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _fields_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Return the names of the fields of the model that `path` leads to; a key of a dictionary is skipped."""
    for part in path:
        info = model.model_fields.get(str(part))
        if info is None:
            continue
        kinds = [info.annotation, *getattr(info.annotation, "__args__", ())]
        model = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), model)
    return list(model.model_fields)


def _merge(values: dict[str, Any], new: Mapping[str, Any], origins: dict[str, str], origin: str) -> None:
    """Lay `new` over `values`, one level of sections deep, and note the origin of every key."""
    for key, value in new.items():
        if isinstance(value, Mapping):
            section = values.setdefault(key, {})
            if isinstance(section, dict):
                section.update(value)
            origins.update({f"{key}.{name}": origin for name in value})
        else:
            values[key] = value
            origins[key] = origin
