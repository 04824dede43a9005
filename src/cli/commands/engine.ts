/** `slipway engine`: an inference engine without weights, or with small ones, that tells exactly what it sampled. */
import type { Command } from 'commander';
import { serveEngine, type EngineFlags } from '../../app/serve-engine.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';

export function addEngineCommand(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  parent
    .command('engine')
    .description('serve a scripted model over the routes of SGLang and vLLM, and log every token')
    .option('--host <HOST>', 'address to listen on (default: 127.0.0.1)')
    .option('--port <N>', 'port; 0 = any free one (default: 0)')
    .option('--model <NAME>', 'name of the model (default: mock)')
    .option('--tokenizer <PATH>', 'tokenizer.json or its folder (default: the bundled vocabulary)')
    .option('--policy <NAME|FILE>', 'a name (docs/engine.md) or a module (default: echo)')
    .option('--seed <N>', 'seed of everything that is drawn (default: 0)')
    .option('--non-canonical <SHARE>', 'share of replies in ids that encoding would not give')
    .option('--latency <LAW>', 'before the first token: constant:MS or pareto:SCALE_MS,ALPHA[,CAP]')
    .option('--token-latency <LAW>', 'before every further token, likewise')
    .option('--faults <FILE|RULES>', 'fault script, JSON or YAML')
    .option('--log <FILE>', 'append one JSON line per request: ids, log-probabilities, text')
    .option('--kv-tokens <N>', 'KV memory in tokens (default: 4194304)')
    .option('--context <N>', 'longest prompt and output together (default: 131072)')
    .option('--max-running <N>', 'requests that run at once, others wait (default: 4096)')
    .option('--api-key-env <NAME>', 'variable that holds the key that clients must send')
    .option('--dialect <NAME>', 'extensions: sglang, vllm, both or openai (default: both)')
    .option('--router-workers <URLS>', 'what the router routes list (default: this server)')
    .option('--gguf <FILE>', 'serve real weights through node-llama-cpp')
    .option('--json', 'print the ready line as a JSON document')
    .action((flags: EngineFlags & { readonly json?: boolean }) =>
      run(async (scope) => {
        const { machine } = await scope.ports();
        await using server = await serveEngine(flags, machine.variables);
        const { url, modelName } = server;
        scope.terminal.out(
          flags.json === true
            ? JSON.stringify({ schema_version: 1, model: modelName, url, pid: process.pid })
            : `slipway engine: ${modelName} at ${url}`,
        );
        scope.announceInterruptsBy(() => undefined);
        await fired(scope.signal);
        return exitCodes.ok;
      }),
    );
}

async function fired(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}
