import type { AgentEnvironment } from '../agents/agent.ts';
import type { Environment } from '../environments/environment.ts';
import type { User } from '../tasks/task.ts';

type Variables = Readonly<Record<string, string>>;

/** The environment as an agent gets it: its user, its variables over those of a request, and no way to end the sandbox. */
export function agentEnvironment(
  environment: Environment,
  scope: { readonly user: User | null; readonly env: Variables },
): AgentEnvironment {
  const { user, env } = scope;
  return {
    user,
    variables: env,
    get hostEndpointUrl() {
      return environment.hostEndpointUrl;
    },
    exec: (request, signal) =>
      environment.exec(
        { ...request, user: request.user ?? user, env: { ...request.env, ...env } },
        signal,
      ),
    openControl: async ({ user: own, signal }) => {
      const channel = await environment.openControl({ user: own ?? user, signal });
      return {
        exec: (request, execSignal) =>
          channel.exec({ ...request, env: { ...request.env, ...env } }, execSignal),
        close: () => channel.close(),
      };
    },
    openProcess: (request, signal) =>
      environment.openProcess(
        { ...request, user: request.user ?? user, env: { ...request.env, ...env } },
        signal,
      ),
    uploadFile: (from, to, signal) => environment.uploadFile(from, to, signal),
    uploadDir: (from, to, signal) => environment.uploadDir(from, to, signal),
    downloadFile: (from, to, signal, options) =>
      environment.downloadFile(from, to, signal, options),
    downloadDir: (from, to, signal, options) => environment.downloadDir(from, to, signal, options),
    withEnv: (variables) => agentEnvironment(environment, { user, env: { ...env, ...variables } }),
  };
}
