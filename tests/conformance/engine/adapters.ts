import type { EngineAdapter } from './adapter.ts';

export const engineAdapters: readonly EngineAdapter[] = [
  { name: 'sglang', kind: 'sglang', dialect: 'sglang', basePath: '', declines: [] },
  {
    name: 'vllm',
    kind: 'vllm',
    dialect: 'vllm',
    basePath: '',
    declines: ['abortAll', 'pause', 'weightVersion'],
  },
  {
    name: 'chat',
    kind: 'chat',
    dialect: 'vllm',
    basePath: '/v1',
    declines: ['tokenInput', 'weightVersion', 'abortById', 'abortAll', 'pause', 'tokenize', 'load'],
  },
];
