/** What the quickstart's runs came to, against what the tasks say of themselves. */
import { isolationOf, judgeTrial } from './expectations.js';

export class Outcome {
  /** @type {string[]} */
  problems = [];
  #environment;
  #asExpected = 0;
  /** @type {string[]} */
  #refused = [];
  /** @type {string[]} */
  #beyondIsolation = [];

  /** @param {string} environment */
  constructor(environment) {
    this.#environment = environment;
  }

  /**
   * @param {'oracle' | 'nop'} agent
   * @param {ReadonlyMap<string, string>} trials Trial folders by the task's name.
   * @param {readonly import('./expectations.js').Expectation[]} expectations
   */
  add(agent, trials, expectations) {
    const isWeak = [...trials.values()].some((dir) => isWeaker(isolationOf(dir)));
    if (isWeak && process.getuid?.() === 0) {
      this.problems.push('sandboxes had weaker isolation although this user is root');
    }
    for (const expected of expectations) {
      const trialDir = trials.get(expected.name);
      const verdict = trialDir
        ? judgeTrial(expected, agent, this.#environment, trialDir)
        : { isRefused: false, problems: ['has no result'] };
      if (verdict.isRefused) this.#refused.push(expected.task);
      else if (verdict.problems.length === 0) this.#asExpected += 1;
      else if (isWeak && expected.needsStrictIsolation) this.#beyondIsolation.push(expected.task);
      else {
        this.problems.push(
          ...verdict.problems.map((what) => `${expected.name} (${agent}) ${what}`),
        );
      }
    }
  }

  text() {
    const lines = [
      `${this.#asExpected} trials in the ${this.#environment} environment gave the expected reward.`,
    ];
    if (this.#refused.length > 0) {
      const tasks = this.#refused.join(', ');
      lines.push(`Refused, as it should be, for want of the capability: ${tasks}.`);
      lines.push('  With `-- --env docker` it runs.');
    }
    if (this.#beyondIsolation.length > 0) {
      const tasks = this.#beyondIsolation.join(', ');
      lines.push(`Beyond the weaker sandboxes that this user can have: ${tasks}.`);
      lines.push('  As root with runc, or with `-- --env docker`, they give their reward.');
    }
    if (this.problems.length > 0) {
      lines.push('Not as expected:', ...this.problems.map((line) => `  ${line}`));
    }
    lines.push("Every trial's files are in the folders named above.");
    return lines.join('\n');
  }
}

/** @param {string | null} isolation */
function isWeaker(isolation) {
  return isolation === 'weak' || isolation === 'none';
}
