/** What people time today: `docker run`, `docker exec`, `docker rm`. */
import { timed } from '../samples.ts';
import { command } from './commands.ts';

export class DockerCliContainer {
  readonly #id: string;

  private constructor(id: string) {
    this.#id = id;
  }

  static async start(image: string): Promise<{ ms: number; container: DockerCliContainer }> {
    const args = ['run', '--detach', '--init', '--network', 'none', image, 'sleep', 'infinity'];
    const { ms, value } = await timed(async () => command('docker', args));
    return { ms, container: new DockerCliContainer(value.trim()) };
  }

  async exec(line: string): Promise<void> {
    await command('docker', ['exec', this.#id, 'sh', '-c', line]);
  }

  async destroy(): Promise<void> {
    await command('docker', ['rm', '--force', '--volumes', this.#id]);
  }
}
