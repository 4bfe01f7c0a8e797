// A websocket client (RFC 6455) on what Node 20 has built in: text frames, and no extensions.

import { createHash, randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import http from "node:http";
import https from "node:https";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, section 1.3
const MAX_BYTES = 4 * 1024 * 1024;
const [CONTINUATION, TEXT, CLOSE, PING, PONG] = [0x0, 0x1, 0x8, 0x9, 0xa];

/** Emits `message` (a string) and, once, `close` (code, reason). */
export class WebSocket extends EventEmitter {
  /** Return an open connection; rejects where the server does not speak `subprotocol`. */
  static open(url, subprotocol) {
    const address = new URL(url);
    const secure = address.protocol === "wss:";
    address.protocol = secure ? "https:" : "http:";
    const key = randomBytes(16).toString("base64");
    const headers = {
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": key,
      "Sec-WebSocket-Protocol": subprotocol,
    };
    return new Promise((resolve, reject) => {
      const request = (secure ? https : http).get(address, { headers });
      request.on("error", reject);
      request.on("response", (response) => {
        response.resume();
        reject(new Error(`${url}: HTTP ${response.statusCode}`));
      });
      request.on("upgrade", (response, socket, head) => {
        const expected = createHash("sha1").update(key + MAGIC).digest("base64");
        const fits =
          response.headers["sec-websocket-accept"] === expected &&
          response.headers["sec-websocket-protocol"] === subprotocol;
        if (!fits) {
          socket.destroy();
          reject(new Error(`${url}: no server that speaks ${subprotocol}`));
          return;
        }
        resolve(new WebSocket(socket, head));
      });
    });
  }

  constructor(socket, head) {
    super();
    this.socket = socket;
    this.buffer = head;
    this.parts = null; // of a message that comes in several frames
    this.closed = null;
    socket.setNoDelay(true);
    socket.on("data", (data) => {
      this.buffer = Buffer.concat([this.buffer, data]);
      this.#read();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.emit("close", ...(this.closed ?? [1006, "the connection was lost"])));
    // What came with the handshake is read when the caller listens.
    setImmediate(() => this.#read());
  }

  send(text) {
    this.#write(TEXT, Buffer.from(text));
  }

  close() {
    if (this.closed === null) {
      this.closed = [1000, ""];
      this.#write(CLOSE, Buffer.from([0x03, 0xe8]));
      this.socket.end();
    }
  }

  #write(opcode, payload) {
    const length = payload.length;
    const size = length < 126 ? 2 : length < 65536 ? 4 : 10;
    const head = Buffer.alloc(size);
    head[0] = 0x80 | opcode;
    head[1] = 0x80 | (size === 2 ? length : size === 4 ? 126 : 127); // a client masks what it sends
    if (size === 4) head.writeUInt16BE(length, 2);
    if (size === 10) head.writeBigUInt64BE(BigInt(length), 2);
    const mask = randomBytes(4);
    const masked = Buffer.from(payload.map((byte, index) => byte ^ mask[index % 4]));
    if (!this.socket.destroyed) this.socket.write(Buffer.concat([head, mask, masked]));
  }

  #read() {
    while (this.buffer.length >= 2) {
      let length = this.buffer[1] & 0x7f;
      let at = 2;
      if (length === 126) {
        if (this.buffer.length < 4) return;
        length = this.buffer.readUInt16BE(2);
        at = 4;
      } else if (length === 127) {
        if (this.buffer.length < 10) return;
        length = Number(this.buffer.readBigUInt64BE(2));
        at = 10;
      }
      if (length > MAX_BYTES) {
        this.closed = [1009, "a frame is too large"];
        this.socket.destroy();
        return;
      }
      if (this.buffer.length < at + length) return;
      const [first] = this.buffer;
      const payload = this.buffer.subarray(at, at + length);
      this.buffer = this.buffer.subarray(at + length);
      this.#take(first & 0x0f, (first & 0x80) !== 0, payload);
    }
  }

  #take(opcode, last, payload) {
    if (opcode === PING) {
      this.#write(PONG, payload);
    } else if (opcode === CLOSE) {
      const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      this.closed ??= [code, payload.subarray(2).toString()];
      this.#write(CLOSE, payload.subarray(0, 2));
      this.socket.end();
    } else if (opcode === TEXT || opcode === CONTINUATION) {
      this.parts = opcode === TEXT ? [payload] : [...(this.parts ?? []), payload];
      if (last) {
        const text = Buffer.concat(this.parts).toString();
        this.parts = null;
        this.emit("message", text);
      }
    }
  }
}
