"""Processes that the load benchmarks are made of: a server, a bare echo, agents, echoers and spectators.

Each is started with `python -m benchmarks._load ROLE`, prints one JSON line when it is ready, and answers every
line on its stdin with one JSON line. Times are of the clock that all processes of a machine share.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from benchmarks._measure import resident_kib

ROOT = Path(__file__).resolve().parent.parent
EVENTS_PER_S = 20
NO_LIMIT = 1e9


class Child:
    """A process of this module, spoken to in JSON lines."""

    def __init__(self, role: str, *words: object) -> None:
        self.role = role
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._load", role, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.ready = self.read()

    def read(self) -> Any:
        """Return the next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of the {self.role} ended")
        return json.loads(line)

    def tell(self, **what: Any) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)

    def ask(self, **what: Any) -> Any:
        """Send a command and return the answer."""
        self.tell(**what)
        return self.read()

    def close(self) -> None:
        """End the process and wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def say(**what: Any) -> None:
    """Answer."""
    print(json.dumps(what), flush=True)


async def commands(answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    """Answer every line of stdin until it ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        say(**await answer(json.loads(line)))


# Servers


async def server(arguments: argparse.Namespace) -> None:
    """The whole server as `arena serve` runs it; on request every measurement of its own time is kept."""
    from arena import table
    from arena.config import Settings
    from arena.live import Stopwatch
    from arena.serving import ArenaServer, prepare_process

    prepare_process()
    samples: list[tuple[float, float]] = []

    class Precise(Stopwatch):
        """By the wall clock, and by this process's processor time as well. It costs system calls of its own."""

        _began: tuple[float, float] | None = None

        def reply(self) -> None:
            super().reply()
            self._began = (time.perf_counter(), time.process_time())

        def ask(self) -> None:
            super().ask()
            if self._began is not None:
                wall, own = self._began
                samples.append((time.perf_counter() - wall, time.process_time() - own))
                self._began = None

    rates = dict.fromkeys(["messages_per_s", "joins_per_s", "connects_per_s", "requests_per_s"], NO_LIMIT)
    limits = dict.fromkeys(["max_connections", "max_connections_per_address", "max_watchers"], 10_000)
    made = ArenaServer(
        Settings(
            home=arguments.home,
            server={"port": 0, "http_port": 0, "fill_after_s": 3600, "deadline_s": 600, "heartbeat_s": 120}
            | rates
            | limits,
        )
    )
    addresses = await made.start()
    say(url=addresses.websocket)

    def counted(name: str, **labels: str) -> float:
        return made.metrics.registry.get_sample_value(name, labels) or 0.0

    async def answer(command: dict[str, Any]) -> dict[str, Any]:
        if command["do"] == "pace":
            return await _pace(made, command)
        table.Stopwatch = Precise if command.get("measure") else Stopwatch  # of the matches that begin now
        taken = samples.copy()
        samples.clear()
        return {
            "cpu_s": time.process_time(),
            "kib": resident_kib(),
            "connections": counted("arena_connections"),
            "messages": counted("arena_messages_received_total") + counted("arena_messages_sent_total"),
            "bytes": counted("arena_sent_bytes_total"),
            "finished": counted("arena_matches_ended_total", how="finished"),
            "failed": counted("arena_matches_ended_total", how="failed"),
            "watchers": made.hub.watchers,
            "restarts": made.hub.drops,
            "samples": taken,
        }

    try:
        await commands(answer)
    finally:
        await made.close()


async def _pace(made: Any, command: dict[str, Any]) -> dict[str, Any]:
    """Publish a real match's entries as if its players took a twentieth of a second for each event."""
    from arena.watcher import MatchInfo

    match, public = str(command["match"]), _public_entries(int(command["events"]))
    if not command["go"]:
        made.hub.open(MatchInfo(match, "avalon", "1", {}, tuple("abcde")))
        return {"open": True}
    fell: list[float] = []
    start = time.monotonic()
    cpu = time.process_time()
    for entry in public:
        await asyncio.sleep(1 / EVENTS_PER_S)
        fell.append(time.monotonic())
        made.hub.publish(match, [entry])
    wall_s = time.monotonic() - start
    made.hub.close(match)
    return {"fell": fell, "wall_s": wall_s, "cpu_s": time.process_time() - cpu}


def _public_entries(count: int) -> list[Any]:
    """Return so many public events of matches among random players."""
    from games.referee import Referee
    from games.registry import load_game

    rng = random.Random(0)
    found: list[Any] = []
    seed = 0
    while len(found) < count:
        state = load_game("avalon").new(seed=seed)
        referee = Referee(state)
        found += referee.opening()
        while turns := referee.turns():
            for seat, turn in turns.items():
                found += [e for e in referee.submit(seat, turn.space.sample(rng)) if hasattr(e, "audience")]
        found = [event for event in found if event.audience is None]
        seed += 1
    return found[:count]


async def echo(arguments: argparse.Namespace) -> None:
    """A bare websockets server that sends back what it gets."""
    from websockets.asyncio.server import serve
    from websockets.exceptions import ConnectionClosed

    async def handle(client: Any) -> None:
        with suppress(ConnectionClosed):
            async for frame in client:
                await client.send(frame)

    async with serve(handle, "127.0.0.1", 0, compression=None, ping_interval=None) as running:
        port = next(iter(running.sockets)).getsockname()[1]
        say(url=f"ws://127.0.0.1:{port}")

        async def answer(command: dict[str, Any]) -> dict[str, Any]:
            return {"cpu_s": time.process_time(), "kib": resident_kib()}

        await commands(answer)


# Clients


async def agents(arguments: argparse.Namespace) -> None:
    """Agents of `clients.protocol` that play matches of five at random, all at once."""
    players = [_Agent(arguments, number) for number in range(arguments.agents)]
    async with AsyncExitStack() as stack:
        for start in range(0, len(players), 50):
            await asyncio.gather(*(player.connect(stack) for player in players[start : start + 50]))
        say(connected=len(players))

        async def answer(command: dict[str, Any]) -> dict[str, Any]:
            start = time.monotonic()
            results = await asyncio.gather(
                *(player.play(command["matches"], command["think_s"]) for player in players),
                return_exceptions=True,
            )
            trouble: Counter[str] = Counter()
            for player, result in zip(players, results, strict=True):
                trouble.update(player.trouble)
                player.trouble.clear()
                if isinstance(result, BaseException):
                    trouble[f"{type(result).__name__}: {result}"[:100]] += 1
            return {
                "wall_s": time.monotonic() - start,
                "cpu_s": time.process_time(),
                "matches": sum(player.matches for player in players) / 5,
                "actions": sum(player.actions for player in players),
                "trouble": dict(trouble),
            }

        await commands(answer)


class _Agent:
    def __init__(self, arguments: argparse.Namespace, number: int) -> None:
        from clients.protocol.client import ClientConnection

        self.url = arguments.url
        self.connection = ClientConnection()
        self.rng = random.Random(number)
        self.name = f"agent {number}"
        self.actions = self.matches = 0
        self.trouble: Counter[str] = Counter()
        self.socket: Any = None

    async def connect(self, stack: AsyncExitStack) -> None:
        from websockets.asyncio.client import connect

        self.socket = await stack.enter_async_context(
            connect(
                self.url, subprotocols=[self.connection.subprotocol], compression=None, ping_interval=None
            )
        )
        self.connection.start()
        await self.flush()
        self.connection.receive(await self.socket.recv())

    async def flush(self) -> None:
        for frame in self.connection.frames_to_send():
            await self.socket.send(frame)

    async def play(self, matches: int, think_s: float) -> None:
        from clients.protocol.messages import Error, Left, Over, Stale, Turn
        from games.spaces import space_from_data

        for _ in range(matches):
            self.connection.join(game="avalon", seats=5, name=self.name)
            await self.flush()
            playing = True
            while playing:
                for message in self.connection.receive(await self.socket.recv()):
                    if isinstance(message, Turn):
                        if think_s:
                            await asyncio.sleep(self.rng.uniform(0, 2 * think_s))
                        action = space_from_data(message.space).sample(self.rng)
                        self.connection.act(message.match, request=message.request, action=action)
                        self.actions += 1
                        if message.failure:
                            self.trouble[f"refused: {message.failure}"] += 1
                    elif isinstance(message, Over):
                        playing = False
                        self.matches += 1
                        for kind in ("timeout", "disconnect", "forced", "error", "forfeit"):
                            if message.counts.get(kind):
                                self.trouble[kind] += message.counts[kind]
                    elif isinstance(message, Error | Left | Stale):
                        self.trouble[message.type] += 1
                await self.flush()


async def bare_agents(arguments: argparse.Namespace) -> None:
    """Agents that cost as little as can be, and play matches of five at random, all at once."""
    from benchmarks._bare import bare_agent

    players = await _all_of(bare_agent, arguments)

    async def answer(command: dict[str, Any]) -> dict[str, Any]:
        start = time.monotonic()
        await asyncio.gather(*(player.play("avalon", 5) for player in players))
        trouble: Counter[str] = Counter()
        for player in players:
            trouble.update(player.trouble)
            player.trouble.clear()
        return {"wall_s": time.monotonic() - start, "trouble": dict(trouble)}

    await commands(answer)


async def echoers(arguments: argparse.Namespace) -> None:
    """Connections that send a frame and wait for it to come back, over and over, at as little cost as can be."""
    from benchmarks._bare import BareEchoer

    sockets = await _all_of(lambda url, number: BareEchoer.connect(url), arguments)

    async def answer(command: dict[str, Any]) -> dict[str, Any]:
        start = time.monotonic()
        for client in sockets:
            client.start(command["bytes"])
        await asyncio.sleep(command["seconds"])
        for client in sockets:
            client.going = False
        await asyncio.gather(*(client.done for client in sockets))
        return {
            "messages": 2 * sum(client.count for client in sockets),
            "wall_s": time.monotonic() - start,
        }

    await commands(answer)


async def _all_of(connect: Callable[[str, int], Awaitable[Any]], arguments: argparse.Namespace) -> list[Any]:
    """Return as many connections as there are to be, and say that they are there."""
    made: list[Any] = []
    for start in range(0, arguments.agents, 50):
        numbers = range(start, min(start + 50, arguments.agents))
        made += await asyncio.gather(*(connect(arguments.url, number) for number in numbers))
    say(connected=len(made))
    return made


async def spectators(arguments: argparse.Namespace) -> None:
    """Spectators of one match that read as fast as they can, and one that never reads after its snapshot."""
    import msgpack
    from websockets.asyncio.client import connect

    from clients.protocol.codec import MSGPACK, encode
    from clients.protocol.messages import Hello, Watch

    async with AsyncExitStack() as stack:
        sockets: list[Any] = []

        async def one(deaf: bool) -> Any:
            more: dict[str, Any] = {}
            if deaf:
                more["sock"] = _narrow(arguments.url)
            client = await stack.enter_async_context(
                connect(
                    arguments.url,
                    subprotocols=[MSGPACK],
                    compression=None,
                    ping_interval=None,
                    max_queue=2,
                    **more,
                )
            )
            for message in (Hello(), Watch(id="w", match=arguments.match)):
                await client.send(encode(message, subprotocol=MSGPACK))
            await client.recv()
            await client.recv()
            return client

        deaf = [number >= arguments.agents - arguments.deaf for number in range(arguments.agents)]
        for start in range(0, arguments.agents, 50):
            sockets += await asyncio.gather(*map(one, deaf[start : start + 50]))
        say(connected=len(sockets))
        readers = sockets[: len(sockets) - arguments.deaf]
        for client in sockets[len(readers) :]:
            client.transport.pause_reading()

        async def read(client: Any) -> tuple[list[float], int]:
            times: list[float] = []
            restarts = 0
            while True:
                message = msgpack.unpackb(await client.recv())
                if message["type"] == "snapshot":
                    times.clear()
                    restarts += 1
                if message["type"] == "frames":
                    if message["first"] != len(times):
                        raise RuntimeError("an event was lost")
                    times += [time.monotonic()] * len(message["entries"])
                    if message["over"]:
                        return times, restarts

        async def answer(command: dict[str, Any]) -> dict[str, Any]:
            results = await asyncio.gather(*map(read, readers), return_exceptions=True)
            good = [result for result in results if not isinstance(result, BaseException)]
            return {
                "times": [times for times, _ in good],
                "restarts": sum(restarts for _, restarts in good),
                "trouble": [str(result) for result in results if isinstance(result, BaseException)],
            }

        await commands(answer)


def _narrow(url: str) -> socket.socket:
    """Return a connected socket that takes little before it is read."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, _, port = url.rpartition("/")[2].partition(":")
    made.connect((host, int(port)))
    made.setblocking(False)
    return made


ROLES = {
    "server": server,
    "echo": echo,
    "agents": agents,
    "bare_agents": bare_agents,
    "echoers": echoers,
    "spectators": spectators,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--url", default="")
    parser.add_argument("--agents", type=int, default=0)
    parser.add_argument("--deaf", type=int, default=0)
    parser.add_argument("--match", default="")
    given = parser.parse_args(arguments)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(ROLES[given.role](given))


if __name__ == "__main__":
    main()
    os._exit(0)  # a thousand sockets need not be closed one by one
