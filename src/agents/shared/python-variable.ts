/** Names the Python of this machine that agents are carried out by, or are made of. */
export const pythonVariable = 'SLIPWAY_PYTHON';
