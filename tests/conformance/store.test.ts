import { memoryAdapter, sqliteAdapter } from './store/adapters.ts';
import { storeSuite } from './store-suite.ts';

for (const adapter of [memoryAdapter, sqliteAdapter]) storeSuite(adapter);
