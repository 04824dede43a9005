/** Preloaded into examples that run in this repository: `slipway` is its sources, as it is the built package where it is installed. */
import { registerHooks } from 'node:module';

const sources = new URL('../../src/index.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'slipway' ? { url: sources, shortCircuit: true } : next(specifier, context),
});
