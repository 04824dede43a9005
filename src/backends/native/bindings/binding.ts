/** What the backend knows about a kind of agent: what it speaks, where its endpoint is written, and what its rollouts are good for. */

export type BindingProtocol =
  'OpenAI Chat Completions' | 'OpenAI Responses' | 'Anthropic Messages' | 'none';

/** Where an agent reads the address of its model: in its options, in its variables, or nowhere. */
export type Wiring = 'kwargs' | 'env' | 'none';

export interface Binding {
  readonly name: string;
  /** What the agent speaks to the address that it is given. */
  readonly protocol: BindingProtocol;
  readonly wiring: Wiring;
  /** The agent is a class of the user's, named by `import_path`; else it is the agent of this name. */
  readonly isCustom: boolean;
  /** Its model calls come from inside the sandbox: its address is that of the sandbox's host endpoint. */
  readonly callsFromSandbox: boolean;
  /** Options and variables that hold the identity of a rollout; nobody else may set them. Paths with dots. */
  readonly ownedKwargs: readonly string[];
  readonly ownedEnv: readonly string[];
  /** Options beneath those of the user. */
  readonly defaults: Readonly<Record<string, unknown>>;
  /** Variables of this process with which the agent would be somebody else's, by name: the value that does so, null = any that is not blank. */
  readonly forbiddenHostVariables: Readonly<Record<string, string | null>>;
  /** Version of the agent's program that the binding was proven with; null = any. Written to the option `version`. */
  readonly pinnedVersion: string | null;
  /** false = its agent is let in only where the server's own settings allow agents that are not verified. */
  readonly isVerified: boolean;
  readonly evaluates: boolean;
  readonly trains: boolean;
  /** Why it does not train or evaluate, or what the user should know of it; null = nothing. */
  readonly note: string | null;
  /** What this server lacks for it; null = nothing: it can be used. */
  readonly needs: string | null;
}
