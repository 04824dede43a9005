import { FakeMachine } from '../fakes/environment/fake-machine.ts';
import { environmentSuite } from './environment-suite.ts';
import { fakeAdapter } from './fake-adapter.ts';

environmentSuite(fakeAdapter(new FakeMachine()));
