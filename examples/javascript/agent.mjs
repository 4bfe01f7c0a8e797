// An agent on plain Node 20: plays one match, taking its seat up again where the connection is lost.
//
//     node examples/javascript/agent.mjs ws://127.0.0.1:8420 avalon [NAME]
//     node examples/javascript/agent.mjs ws://127.0.0.1:8420 tournament:CUP [NAME]
//
// A token is taken from the environment, ARENA_TOKEN. The protocol is described in docs/protocol.md.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "./websocket.mjs";

const [url, what, name = "node"] = process.argv.slice(2);
if (what === undefined) {
  console.error("usage: node agent.mjs URL GAME|tournament:CUP [NAME]");
  process.exit(2);
}
const token = process.env.ARENA_TOKEN ?? "";
const tournament = what.startsWith("tournament:") ? what.slice("tournament:".length) : null;

// The same id sent again is the same request: after a loss the server does not seat us twice.
const join = { type: "join", id: randomUUID(), name, agent: "javascript example" };
Object.assign(join, tournament === null ? { game: what } : { where: "tournament", tournament });

const seats = new Map(); // by match: what is needed to take the seat up again
let over = false; // whether no further seat will come
let done = false;
let graceMs = 30_000;

/** Any legal action: what is in `space` is all there is to know. */
function choose(space) {
  const shuffled = [...(space.options ?? [])].sort(() => Math.random() - 0.5);
  if (space.kind === "choice") return shuffled[0];
  if (space.kind === "subset") return shuffled.slice(0, space.size);
  return "I have seen enough.".slice(0, space.max_chars);
}

/** Take one message from the server; return what to answer. */
function take(message) {
  const seat = seats.get(message.match);
  switch (message.type) {
    case "welcome":
      graceMs = message.grace_s * 1000;
      return token ? [{ type: "authenticate", token }] : owed();
    case "authenticated":
      return owed();
    case "seated": {
      const known = seat ?? { seen: 0, seat: message.seat, answer: null };
      seats.set(message.match, { ...known, resume: message.resume });
      return [];
    }
    case "events": {
      // Events are counted for this seat; some may come twice, and none may be missing.
      if (seat === undefined) return [];
      if (message.first > seat.seen) throw new Error("events are missing");
      seat.seen = Math.max(seat.seen, message.first + message.events.length);
      return [];
    }
    case "turn": {
      if (seat === undefined) return [];
      if (seat.answer?.request !== message.request) {
        const { match, request } = message;
        seat.answer = { type: "act", match, request, action: choose(message.space) };
      }
      return [seat.answer]; // a turn that came again gets the answer that it had
    }
    case "over":
      console.log(`${message.match}: ${message.ended[seat.seat]} as ${message.roles[seat.seat]}`);
      return drop(message.match, tournament === null);
    case "left":
      return drop(message.match, tournament === null || message.reason === "over");
    case "error":
      if (message.code === "unauthorised" || message.id === join.id) {
        console.error(`the server refused: ${message.message} (${message.code})`);
        process.exit(1);
      }
      for (const [match, { resumed }] of seats) {
        if (message.code === "bad_resume" && message.id === resumed) drop(match, tournament === null);
      }
      return [];
    default:
      return []; // a newer server may say more
  }
}

/** Let go of a seat; we are done when none is left and none will come. */
function drop(match, last) {
  seats.delete(match);
  over ||= last;
  done = over && seats.size === 0;
  return [];
}

/** What is asked once the handshake is done: our seats, or one. */
function owed() {
  const resumes = [...seats.values()].map((seat) => {
    seat.resumed = randomUUID();
    return { type: "resume", id: seat.resumed, resume: seat.resume, seen: seat.seen };
  });
  return seats.size > 0 && tournament === null ? resumes : [...resumes, join];
}

/** Have one connection until it is lost or all is done. */
async function session() {
  const socket = await WebSocket.open(url, "arena.1.json");
  const say = (message) => socket.send(JSON.stringify(message));
  say({ type: "hello", versions: [1], client: "javascript example" });
  return new Promise((resolve, reject) => {
    socket.on("close", resolve);
    socket.on("message", (text) => {
      try {
        take(JSON.parse(text)).forEach(say);
        if (done) socket.close();
      } catch (error) {
        socket.close();
        reject(error);
      }
    });
  });
}

for (let lostAt = null; !done; ) {
  try {
    await session();
    lostAt = Date.now();
  } catch (error) {
    if (lostAt === null || Date.now() - lostAt > graceMs) {
      console.error(error.message || String(error));
      process.exit(1);
    }
  }
  if (!done) await sleep(100 + Math.random() * 400);
}
