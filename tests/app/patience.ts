/** After so many questions whether it still works a patient thread has ended: later than a stuck one may live. */
export const pingsOfPatience = 6;
