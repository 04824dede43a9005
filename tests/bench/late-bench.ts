/** A bench that never comes to its end. */
import { reportWhenLate } from '../../bench/report.ts';

const figures = [{ name: 'pace', value: 7, unit: '/s' }];
reportWhenLate('late', () => ({ figures, goals: [] }));
console.log('ready');
setInterval(() => undefined, 1_000);
