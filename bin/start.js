import { existsSync } from 'node:fs';

/** Runs the built program, or in a checkout its sources. */
export async function start() {
  const built = new URL('../dist/cli/main.js', import.meta.url);
  const sources = new URL('../src/cli/main.ts', import.meta.url);
  const { main } = await import(existsSync(sources) ? sources.href : built.href);
  process.exitCode = await main(process.argv.slice(2));
}
