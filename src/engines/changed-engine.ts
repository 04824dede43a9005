import type { Engine } from './engine.ts';

/** An engine that does what `engine` does, but for `changes`. */
export function changedEngine(engine: Engine, changes: Partial<Engine>): Engine {
  return {
    kind: engine.kind,
    url: engine.url,
    capabilities: engine.capabilities,
    generate: (request, signal) => engine.generate(request, signal),
    abort: (requestId, signal) => engine.abort(requestId, signal),
    abortAll: (signal) => engine.abortAll(signal),
    pause: (mode, signal) => engine.pause(mode, signal),
    continue: (signal) => engine.continue(signal),
    health: (signal) => engine.health(signal),
    load: (signal) => engine.load(signal),
    tokenize: (text, signal) => engine.tokenize(text, signal),
    close: () => engine.close(),
    destroy: (reason) => engine.destroy(reason),
    ...changes,
  };
}
