// Plays the model: it guesses one of three, so that groups have rewards that differ.

const guesses = ['red', 'green', 'blue'];

/** @param {{ random: () => number }} request */
export default ({ random }) => ({ content: guesses[Math.floor(random() * guesses.length)] });
