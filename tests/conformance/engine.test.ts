import { engineAdapters } from './engine/adapters.ts';
import { engineSuite } from './engine-suite.ts';

for (const adapter of engineAdapters) engineSuite(adapter);
