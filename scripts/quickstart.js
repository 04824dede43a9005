/**
 * `npm run quickstart [-- --env local|docker] [--show collect|server|agents|tasks]`: sets this machine up, runs bundled tasks and says whether everything is as
 * it should be. `collect`, the default, collects two batches of groups from a rollout server as a trainer does; `server` lets a small controller ask it for
 * rollouts; `agents` runs terminus-2 against a mock engine; `tasks` runs the agent that knows the answers. Runs on any Node since 16.
 */
import { runOnSlipwayNode } from './setup/child.js';
import { setUp } from './setup/main.js';

const environments = ['local', 'docker'];
/** The newest first: it is what runs without a flag. */
const shows = ['collect', 'server', 'agents', 'tasks'];

const usage = `npm run quickstart -- [--env ${environments.join('|')}] [--show ${shows.join('|')}]`;

/**
 * @param {readonly string[]} argv
 * @returns {{ environment: string, show: string, problem: string | null }}
 */
function readArguments(argv) {
  let environment = 'local';
  let [show = ''] = shows;
  for (let at = 0; at < argv.length; at += 2) {
    const [name = '', inline] = (argv[at] ?? '').split('=', 2);
    const value = inline ?? argv[at + 1] ?? '';
    if (inline !== undefined) at -= 1;
    if (name === '--env' && environments.includes(value)) environment = value;
    else if (name === '--show' && shows.includes(value)) show = value;
    else return { environment, show, problem: problemWith(name, value) };
  }
  return { environment, show, problem: null };
}

/** @param {string} name @param {string} value */
function problemWith(name, value) {
  if (name === '--env') return `--env ${value}: expected ${environments.join(' or ')}.`;
  if (name === '--show') return `--show ${value}: expected ${shows.join(' or ')}.`;
  return `Unknown: ${name}. Usage: ${usage}`;
}

async function main() {
  const argv = process.argv.slice(2);
  if (argv.includes('--help') || argv.includes('-h')) {
    console.log(usage);
    return 0;
  }
  const { environment, show, problem } = readArguments(argv);
  if (problem !== null) {
    console.error(problem);
    return 2;
  }
  const state = await setUp(environment === 'docker' ? ['docker', 'compose'] : ['local']);
  if (state === 'failed') return 1;
  console.log('');
  return runOnSlipwayNode(`scripts/quickstart/show-${show}.js`, [environment]);
}

process.exitCode = await main();
