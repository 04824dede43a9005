import tseslint from 'typescript-eslint';
import { layersRule } from './scripts/lint/layers-rule.js';

const nodeGlobals = Object.fromEntries(
  [
    'process',
    'console',
    'URL',
    'Buffer',
    'setTimeout',
    'clearTimeout',
    'setInterval',
    'AbortController',
    'fetch',
  ].map((name) => [name, 'readonly']),
);

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'tasks', '.cache', 'tests/golden', 'jobs'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['src/**/*.ts', 'tests/**/*.ts', 'bench/**/*.ts', 'examples/**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    plugins: { slipway: { rules: { layers: layersRule } } },
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      'slipway/layers': 'error',
      'max-lines': ['error', 500],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'it', 'describe', 'suite'] },
          ],
        },
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector: "MemberExpression[object.name='AbortSignal'][property.name='any']",
          message: 'AbortSignal.any leaks on long-lived parents: use LinkedAbort.',
        },
        { selector: 'TSEnumDeclaration', message: 'Use a const object and a union.' },
      ],
    },
  },
  {
    files: ['tests/**/*.ts', 'bench/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['**/*.js'],
    extends: [tseslint.configs.base],
    languageOptions: { globals: nodeGlobals },
    rules: { 'no-undef': 'error', 'max-lines': ['error', 500] },
  },
);
