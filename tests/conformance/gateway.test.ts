import { describeGateway } from './gateway-suite.ts';

describeGateway('in the process of the server', 0);
describeGateway('in processes of its own', 2);
