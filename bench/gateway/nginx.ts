/** nginx with one worker on a core of its own: as the proxy that gateways are compared with, or as the upstream, which answers at once. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onCore, type Core } from './cores.ts';

/** About 2 KB: a chat completion of some hundred tokens. */
export const wholeAnswer = JSON.stringify({
  ...{ id: 'chatcmpl-bench', object: 'chat.completion', created: 0, model: 'm' },
  choices: [
    {
      ...{ index: 0, finish_reason: 'stop' },
      message: { role: 'assistant', content: 'y'.repeat(1_800) },
    },
  ],
  usage: { prompt_tokens: 2_000, completion_tokens: 450, total_tokens: 2_450 },
});

/** The same kind of answer with the ids and log-probabilities of 64 tokens, as vLLM tells them. */
export const answerWithTokens = JSON.stringify({
  ...{ id: 'chatcmpl-bench', object: 'chat.completion', created: 0, model: 'm' },
  prompt_token_ids: Array.from({ length: 500 }, (_, index) => index),
  choices: [
    {
      ...{ index: 0, finish_reason: 'stop' },
      message: { role: 'assistant', content: 'word '.repeat(64) },
      token_ids: Array.from({ length: 64 }, (_, index) => 1_000 + index),
      logprobs: {
        content: Array.from({ length: 64 }, (_, index) => ({
          ...{ token: 'word ', logprob: -0.123456 - index, bytes: null, top_logprobs: [] },
        })),
      },
    },
  ],
  usage: { prompt_tokens: 500, completion_tokens: 64, total_tokens: 564 },
});

const startMs = 10_000;

export class Nginx implements AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #dir: string;

  private constructor(child: ChildProcess, at: { readonly url: string; readonly dir: string }) {
    this.#child = child;
    this.#dir = at.dir;
    this.url = at.url;
    this.pid = child.pid ?? 0;
  }

  /** Answers every request alike. */
  static answering(core: Core, answer = wholeAnswer): Promise<Nginx> {
    // No word of its configuration may be longer than 4 KiB.
    const pieces = answer.match(/.{1,3000}/g) ?? [];
    const set = pieces.map((piece, index) => `set $piece${index}x '${piece}';`).join(' ');
    const text = pieces.map((_, index) => `\${piece${index}x}`).join('');
    const location = `default_type application/json; ${set} return 200 "${text}";`;
    return Nginx.#start(core, location, '');
  }

  /** Passes everything to another address, both ways as it comes. */
  static proxy(core: Core, upstreamUrl: string): Promise<Nginx> {
    const { host } = new URL(upstreamUrl);
    const location = `
      proxy_pass http://upstream;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 1h;
      client_body_buffer_size 64k;`;
    return Nginx.#start(core, location, `upstream upstream { server ${host}; keepalive 2048; }`);
  }

  static async #start(core: Core, location: string, upstream: string): Promise<Nginx> {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-nginx-'));
    const port = await freePort();
    const file = path.join(dir, 'nginx.conf');
    await writeFile(
      file,
      `
      worker_processes 1; daemon off; pid ${dir}/pid; error_log ${dir}/error.log;
      worker_rlimit_nofile 16384;
      events { worker_connections 8192; }
      http {
        access_log off; keepalive_requests 1000000000; keepalive_timeout 1h; tcp_nodelay on;
        client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/f;
        uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
        ${upstream}
        server { listen 127.0.0.1:${port} backlog=4096; location / { ${location} } }
      }`,
    );
    const [program = '', ...argv] = onCore(core, ['nginx', '-p', dir, '-c', file]);
    const child = spawn(program, argv, { stdio: ['ignore', 'ignore', 'inherit'] });
    const url = `http://127.0.0.1:${port}`;
    const nginx = new Nginx(child, { url, dir });
    const until = performance.now() + startMs;
    while (!(await listens(port))) {
      if (performance.now() > until || child.exitCode !== null) {
        await nginx[Symbol.asyncDispose]();
        throw new Error(`nginx does not start: see ${dir}/error.log`);
      }
      await delay(20);
    }
    return nginx;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await ended;
    }
    await rm(this.#dir, { recursive: true, force: true });
  }
}

/** Asks nothing of it: that would be passed on. */
async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
