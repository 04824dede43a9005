import type { Rule } from 'eslint';
export const layersRule: Rule.RuleModule;
