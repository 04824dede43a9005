/** A whole run of the agent's loop on a scripted engine and a terminal that only notes what it is told; its documents are real files. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { runWithTerminal } from '../../../src/agents/terminus-2/run-with-terminal.ts';
import { compileOptions } from '../../../src/agents/terminus-2/options.ts';
import type { Terminal } from '../../../src/agents/terminus-2/terminal/terminal.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { ExecResult } from '../../../src/environments/environment.ts';
import type { AtifTrajectory } from '../../../src/wire/atif/atif.ts';
import type { AgentResult } from '../../../src/wire/harbor/trial-result.ts';
import { JumpingClock } from '../../fakes/jumping-clock.ts';
import { ScriptedEngine, type Script } from './scripted-engine.ts';

const emptyResult: ExecResult = { exitCode: 0, stdout: '', stderr: '', isTruncated: false };

export interface LoopOptions {
  readonly script: Script;
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly terminal?: Partial<Terminal>;
  readonly secrets?: readonly string[];
  readonly signal?: AbortSignal;
  /** What a look at the sandbox says. */
  readonly exec?: () => Promise<ExecResult>;
}

export interface LoopRun {
  readonly engine: ScriptedEngine;
  /** Keys and durations in the order they were typed. */
  readonly typed: readonly (readonly [keys: string, durationSec: number])[];
  /** Every result that was reported, the last one last. */
  readonly results: readonly AgentResult[];
  readonly result: AgentResult | undefined;
  /** null = it ended without an error. */
  readonly error: unknown;
  readonly documents: Readonly<Record<string, AtifTrajectory>>;
  readonly main: AtifTrajectory | undefined;
}

export async function runLoop(options: LoopOptions): Promise<LoopRun> {
  const logsDir = mkdtempSync(path.join(os.tmpdir(), 'slipway-terminus-'));
  const engine = new ScriptedEngine(options.script);
  const typed: [string, number][] = [];
  const results: AgentResult[] = [];
  let reads = 0;
  const terminal: Terminal = {
    transport: 'exec',
    isAlive: () => Promise.resolve(true),
    send: (keys, { durationSec }) => {
      typed.push([keys, durationSec]);
      return Promise.resolve();
    },
    readOutput: () => Promise.resolve(`<output ${reads++}>`),
    screen: () => Promise.resolve('<the screen>'),
    close: () => Promise.resolve(),
    ...options.terminal,
  };
  let error: unknown = null;
  try {
    await runWithTerminal(
      {
        options: compileOptions({
          kwargs: { collect_rollout_details: true, session_id: 'session', ...options.kwargs },
          modelName: 'openai/m',
          logger: silentLogger,
        }),
        instruction: 'Do the thing.',
        deadline: null,
        sessionId: 'session',
        agent: { name: 'terminus-2', version: '2.0.0' },
        logsDir,
        secrets: options.secrets ?? [],
        engine,
        terminal,
        environment: {
          exec: options.exec ?? (() => Promise.resolve(emptyResult)),
        },
        record: (result) => results.push(result),
        clock: new JumpingClock(),
        logger: silentLogger,
      },
      options.signal ?? never,
    );
  } catch (thrown) {
    error = thrown;
  }
  try {
    const documents = readDocuments(logsDir);
    const main = documents['trajectory.json'];
    return { engine, typed, results, result: results.at(-1), error, documents, main };
  } finally {
    rmSync(logsDir, { recursive: true });
  }
}

function readDocuments(dir: string): Record<string, AtifTrajectory> {
  return Object.fromEntries(
    readdirSync(dir)
      .sort()
      .map((name) => [
        name,
        JSON.parse(readFileSync(path.join(dir, name), 'utf8')) as AtifTrajectory,
      ]),
  );
}

export interface ReplyFields {
  readonly analysis?: string;
  readonly plan?: string;
  readonly commands?: readonly (string | readonly [keys: string, duration: number])[];
  readonly isComplete?: boolean;
}

/** A reply in the JSON format. */
export function json(fields: ReplyFields): string {
  const commands = (fields.commands ?? []).map((command) =>
    typeof command === 'string'
      ? { keystrokes: command, duration: 0.1 }
      : { keystrokes: command[0], duration: command[1] },
  );
  return JSON.stringify({
    analysis: fields.analysis ?? 'seen',
    plan: fields.plan ?? 'do',
    commands,
    ...(fields.isComplete !== undefined && { task_complete: fields.isComplete }),
  });
}

export const done = json({ isComplete: true });

/** Replies in order; the last one again and again. */
export function inOrder(...replies: readonly Awaited<ReturnType<Script>>[]): Script {
  return (_, call) => replies[Math.min(call, replies.length - 1)] ?? '';
}
