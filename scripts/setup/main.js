/**
 * `npm run setup`: everything that `npm run quickstart` and `npm test` need, from a clean clone on a machine with any Node since 16.
 * Every step looks first and does only what is missing. Until `npm ci` has run, nothing here may import a package.
 */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { provideAtifPeers } from './atif-peers.js';
import { provideBaseImage } from './base-image.js';
import { provideCompose } from './compose-plugin.js';
import { provideDocker } from './docker-daemon.js';
import { provideDockerRegistry } from './docker-registry.js';
import { provideDaytonaPeer } from './daytona-peer.js';
import { provideHarborPeer } from './harbor-peer.js';
import { provideLlama } from './llama.js';
import { provideMilesPeer } from './miles-peer.js';
import { provideModelClients } from './model-clients.js';
import { provideNatsServer } from './nats-server.js';
import { provideNodeModules } from './node-modules.js';
import { provideOsmosisPeer } from './osmosis-peer.js';
import { step } from './step.js';
import { provideSystemPackages } from './system-packages.js';
import { provideTrainerPeers } from './trainer-peers.js';

/** @typedef {'local' | 'docker' | 'compose' | 'tests'} Part */

/** @type {readonly Part[]} */
export const allParts = ['local', 'docker', 'compose', 'tests'];

/**
 * Runs the steps for the parts. Steps that cannot be done are printed, and the others still run.
 *
 * @param {readonly Part[]} parts
 * @returns {Promise<'complete' | 'partial' | 'failed'>} `failed`: nothing of ours can run.
 */
export async function setUp(parts) {
  const environments = /** @type {('local' | 'docker')[]} */ (
    parts.filter((part) => part === 'local' || part === 'docker')
  );
  const modules = await step('npm packages', provideNodeModules);
  if (modules) return 'failed';
  const problems = [await step('system packages', () => provideSystemPackages(parts))];
  if (parts.includes('docker')) problems.push(await step('docker', provideDocker));
  if (parts.includes('compose')) problems.push(await step('compose', provideCompose));
  if (parts.includes('tests')) problems.push(await step('nats server', provideNatsServer));
  if (parts.includes('tests')) problems.push(await step('image registry', provideDockerRegistry));
  if (parts.includes('tests')) problems.push(await step('trajectory peers', provideAtifPeers));
  if (parts.includes('tests')) problems.push(await step('gguf runtime', provideLlama));
  if (parts.includes('tests')) problems.push(await step('osmosis peer', provideOsmosisPeer));
  if (parts.includes('tests')) problems.push(await step('harbor peer', provideHarborPeer));
  if (parts.includes('tests')) problems.push(await step('model clients', provideModelClients));
  if (parts.includes('tests')) problems.push(await step('miles peer', provideMilesPeer));
  if (parts.includes('tests')) problems.push(await step('trainer peers', provideTrainerPeers));
  if (parts.includes('tests')) problems.push(await step('daytona client', provideDaytonaPeer));
  problems.push(await step('base image', () => provideBaseImage(environments)));
  return problems.every((problem) => problem === null) ? 'complete' : 'partial';
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((part) => !allParts.some((known) => known === part));
  if (unknown.length > 0) {
    console.error(`Unknown: ${unknown.join(', ')}. Parts are ${allParts.join(', ')}.`);
    process.exitCode = 2;
  } else {
    const parts = wanted.length > 0 ? allParts.filter((part) => wanted.includes(part)) : allParts;
    process.exitCode = (await setUp(parts)) === 'complete' ? 0 : 1;
  }
}
