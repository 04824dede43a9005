/** What the ids of prompts are made with: one vocabulary for each process, for the session routes and for calls of rollouts. */
import type { ServeConfig } from '../../../config/serve/read-serve-config.ts';
import type { Clock } from '../../../core/clock.ts';
import { isRolloutError, RolloutError } from '../../../core/errors.ts';
import type { ModelWords, TokensMode } from '../../../gateway/tokens/tokens-mode.ts';
import type { ChatCodec } from '../../../sessions/codec.ts';
import { checkLaunchVariables } from '../../../sessions/families/launch-variables.ts';
import { openCodec } from '../../../sessions/families/registry.ts';
import { openMatcher } from '../../../sessions/miles/named-rules.ts';
import { codecRenderer, splitRenderer } from '../../../sessions/prompts/prompt-renderer.ts';
import { RenderingThread } from '../../../sessions/prompts/rendering-thread.ts';
import { renamed } from './renamed-error.ts';

export class OpenedTokens implements AsyncDisposable {
  /** null = no route can go this way. */
  readonly mode: TokensMode | null;
  readonly #config: ServeConfig;
  readonly #clock: Clock;
  #codec: Promise<ChatCodec> | null = null;
  #words: Promise<ModelWords> | null = null;
  #thread: RenderingThread | null = null;

  constructor(config: ServeConfig, clock: Clock) {
    this.#config = config;
    this.#clock = clock;
    const { mode, engineKind } = config.gateway;
    const { tokenizer, templateVariables } = config.sessions;
    const isDefault = mode === 'tokens';
    this.mode =
      engineKind === 'chat' || (tokenizer === null && !isDefault)
        ? null
        : { ...{ kind: engineKind, isDefault, templateVariables }, words: () => this.#open() };
  }

  /** Opens what all routes need. CONFIG_INVALID. */
  async ready(): Promise<void> {
    const { mode, engineKind } = this.#config.gateway;
    if (mode !== 'tokens') return;
    if (engineKind === 'chat')
      throw new RolloutError(
        'CONFIG_INVALID',
        'an engine that is not known cannot be asked in ids',
        {
          ...{ phase: 'config', field: 'gateway.engine_kind' },
          remedy: 'Say what the engine is: sglang or vllm. Or set gateway.mode to relay.',
        },
      );
    await this.#open();
  }

  /** CONFIG_INVALID. */
  codec(): Promise<ChatCodec> {
    return (this.#codec ??= this.#openCodec());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread?.[Symbol.asyncDispose]();
  }

  #open(): Promise<ModelWords> {
    return (this.#words ??= this.#openWords());
  }

  async #openWords(): Promise<ModelWords> {
    const codec = await this.codec();
    const { tokenizer, family, template: templateFile } = this.#config.sessions;
    const { matcher } = this.#config.gateway;
    const matches = await underField('gateway.matcher', () => openMatcher(matcher));
    const thread = new RenderingThread({ family, tokenizer: tokenizer ?? '', templateFile });
    thread.begin();
    this.#thread = thread;
    return { codec, matches, renderer: splitRenderer(codecRenderer(codec), thread) };
  }

  async #openCodec(): Promise<ChatCodec> {
    const codec = await this.#codecOfCheckpoint();
    const { templateVariables } = this.#config.sessions;
    await underField('sessions.template_variables', () =>
      checkLaunchVariables(codec, templateVariables),
    );
    return codec;
  }

  async #codecOfCheckpoint(): Promise<ChatCodec> {
    const { tokenizer, family, template: templateFile } = this.#config.sessions;
    if (tokenizer === null)
      throw new RolloutError('CONFIG_INVALID', 'ids are made with the tokenizer of the model', {
        ...{ phase: 'config', field: 'sessions.tokenizer' },
        remedy: 'Name the folder of its checkpoint, and its family by sessions.family.',
      });
    try {
      const now = (): Date => this.#clock.now();
      return await openCodec({ family, tokenizer, templateFile, now });
    } catch (error) {
      const isFamily = isRolloutError(error) && error.field === '--family';
      throw renamed(error, isFamily ? 'sessions.family' : 'sessions.tokenizer');
    }
  }
}

async function underField<T>(field: string, open: () => T | Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw renamed(error, field);
  }
}
