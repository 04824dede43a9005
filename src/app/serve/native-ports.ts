/** What the native backend uses of this program: sandboxes that are journalled like those of every run, and the sources of tasks. */
import type { NativePorts } from '../../backends/native/native-ports.ts';
import { RolloutError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { dumpTaskEntry } from '../../wire/harbor/dump.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { compileJobConfig } from '../../config/job-request.ts';
import { JobSkills } from '../../jobs/skills.ts';
import type { AppPorts } from '../ports.ts';
import { openSandboxRun } from '../sandbox-run.ts';
import { withGatewayAddress } from './gateway-address.ts';

export function nativePorts(
  ports: AppPorts,
  { logger, config }: { readonly logger: Logger; readonly config: ServeConfig },
): NativePorts {
  const skills = new JobSkills(ports.skillSources);
  return {
    loadSkills: (sources, signal) => skills.load(sources, signal),
    async openTrials({ environment, allowUnsandboxed, agent }, signal) {
      if (agent !== undefined) await ports.resolveAgent(agent);
      const ended = new AbortController();
      const run = await openSandboxRun(
        {
          environment: withGatewayAddress(environment, config),
          allowUnsandboxed,
          signal,
          runSignal: ended.signal,
          leavesCleaning: true,
          note: (text) => logger.log('warn', text),
        },
        ports,
      );
      const createTrial = run.trialFactory(logger);
      return {
        createTrial,
        hasHostEndpoint: run.provider.capabilities.hostEndpoint,
        async [Symbol.asyncDispose]() {
          ended.abort(new RolloutError('CANCELLED', 'the server has ended', { phase: 'server' }));
          await run[Symbol.asyncDispose]();
        },
      };
    },
    async findTask(entry, signal) {
      const config = compileJobConfig({ tasks: [dumpTaskEntry(entry)] });
      const { tasks, warnings } = await ports.taskSource.tasks(config, signal);
      const [task] = tasks;
      if (task === undefined) throw new TypeError('one task per reference');
      return { task, warnings };
    },
  };
}
