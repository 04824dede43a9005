/**
 * Portkey's gateway from npm, on one core. Its published image runs it on Node 20 (`FROM node:20-alpine`); that Node comes from npm too, built for glibc. Streams it
 * answers with an error of its own on both.
 */
import path from 'node:path';
import { npmInstalled, startedProgram, type RunningProgram } from './installed-program.ts';
import { freePort } from './nginx.ts';

const version = '1.15.2';
const imageNode = '20.20.2';

export const portkeyNodes = { image: `Node ${imageNode}`, ours: `Node ${process.versions.node}` };

export async function startPortkey(
  upstreamUrl: string,
  node: keyof typeof portkeyNodes,
): Promise<RunningProgram> {
  const port = await freePort();
  const dir = await npmInstalled(`bench-portkey-${version}`, [`@portkey-ai/gateway@${version}`]);
  const entry = path.join(dir, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  const program = node === 'ours' ? process.execPath : await nodeOfImage();
  return await startedProgram([program, entry, `--port=${port}`, '--headless'], {
    ...{ port, probe: '/', startMs: 30_000 },
    headers: {
      ...{ authorization: 'Bearer bench-upstream-key', 'x-portkey-provider': 'openai' },
      'x-portkey-custom-host': upstreamUrl,
    },
  });
}

async function nodeOfImage(): Promise<string> {
  const name = `node-linux-${process.arch}`;
  const dir = await npmInstalled(`bench-node-${imageNode}`, [`${name}@${imageNode}`]);
  return path.join(dir, 'node_modules', name, 'bin/node');
}
