/** Objects of ATIF as published (spec: RFC 0001 of Harbor, versions 1.0 to 1.7); absent and null mean the same. */
export interface AtifTrajectory {
  readonly schema_version?: string;
  readonly session_id?: string | null;
  readonly trajectory_id?: string | null;
  readonly agent: AtifAgent;
  readonly steps: readonly AtifStep[];
  readonly notes?: string | null;
  readonly final_metrics?: AtifFinalMetrics | null;
  readonly continued_trajectory_ref?: string | null;
  readonly extra?: Readonly<Record<string, unknown>> | null;
  readonly subagent_trajectories?: readonly AtifTrajectory[] | null;
}

export interface AtifAgent {
  readonly name: string;
  readonly version: string;
  readonly model_name?: string | null;
  readonly tool_definitions?: readonly Readonly<Record<string, unknown>>[] | null;
  readonly extra?: Readonly<Record<string, unknown>> | null;
}

export interface AtifStep {
  readonly step_id: number;
  readonly source: 'system' | 'user' | 'agent';
  readonly message: string | readonly AtifContentPart[];
  readonly timestamp?: string | null;
  readonly model_name?: string | null;
  readonly reasoning_effort?: string | number | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly AtifToolCall[] | null;
  readonly observation?: AtifObservation | null;
  readonly metrics?: AtifMetrics | null;
  readonly is_copied_context?: boolean | null;
  readonly llm_call_count?: number | null;
  readonly extra?: Readonly<Record<string, unknown>> | null;
}

export interface AtifToolCall {
  readonly tool_call_id: string;
  readonly function_name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly extra?: Readonly<Record<string, unknown>> | null;
}

export interface AtifObservation {
  readonly results: readonly AtifObservationResult[];
}

export interface AtifObservationResult {
  readonly source_call_id?: string | null;
  readonly content?: string | readonly AtifContentPart[] | null;
  readonly subagent_trajectory_ref?: readonly AtifSubagentRef[] | null;
  readonly extra?: Readonly<Record<string, unknown>> | null;
}

export interface AtifSubagentRef {
  readonly trajectory_id?: string | null;
  readonly trajectory_path?: string | null;
  readonly session_id?: string | null;
  readonly extra?: Readonly<Record<string, unknown>> | null;
}

export interface AtifMetrics {
  /** Includes cached tokens. */
  readonly prompt_tokens?: number | null;
  readonly completion_tokens?: number | null;
  readonly cached_tokens?: number | null;
  readonly cost_usd?: number | null;
  readonly prompt_token_ids?: readonly number[] | null;
  readonly completion_token_ids?: readonly number[] | null;
  readonly logprobs?: readonly number[] | null;
  readonly extra?: Readonly<Record<string, unknown>> | null;
}

export interface AtifFinalMetrics {
  readonly total_prompt_tokens?: number | null;
  readonly total_completion_tokens?: number | null;
  readonly total_cached_tokens?: number | null;
  readonly total_cost_usd?: number | null;
  readonly total_steps?: number | null;
  readonly extra?: Readonly<Record<string, unknown>> | null;
}

export interface AtifContentPart {
  readonly type: 'text' | 'image';
  readonly text?: string | null;
  readonly source?: { readonly media_type: string; readonly path: string } | null;
}
