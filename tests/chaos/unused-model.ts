/** Nobody listens there: for backends that want an address of a model, and rollouts that ask none. */
export const unusedModelUrl = 'http://127.0.0.1:9/v1';
