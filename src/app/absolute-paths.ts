import { resolve } from 'node:path';
import type { JobConfig } from '../wire/harbor/job-config.ts';

/** Paths of this machine made absolute, so that a job can be resumed from another folder. Paths inside repositories stay. */
export function absolutePaths(config: JobConfig, cwd: string): JobConfig {
  const absolute = (path: string): string => resolve(cwd, path);
  const optional = (path: string | null): string | null => (path === null ? null : absolute(path));
  return {
    ...config,
    jobs_dir: absolute(config.jobs_dir),
    extra_instruction_paths: config.extra_instruction_paths.map(absolute),
    environment: {
      ...config.environment,
      extra_docker_compose: config.environment.extra_docker_compose.map(absolute),
    },
    tasks: config.tasks.map((task) => ({
      ...task,
      path: task.git_url === null ? optional(task.path) : task.path,
      download_dir: optional(task.download_dir),
    })),
    datasets: config.datasets.map((dataset) => ({
      ...dataset,
      path: dataset.repo === null ? optional(dataset.path) : dataset.path,
      registry_path:
        dataset.repo === null ? optional(dataset.registry_path) : dataset.registry_path,
      download_dir: optional(dataset.download_dir),
    })),
  };
}
