/** Seeded numbers of tests are those of the program. */
export { seededRandom } from '../../src/core/seeded-random.ts';
