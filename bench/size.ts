/** `BENCH_SIZE=short`: fewer rounds and smaller counts, for a look at all benches in some minutes. Such numbers scatter; goals are those of the full size. */
export const isShort = process.env['BENCH_SIZE'] === 'short';

export function sized<Value>(full: Value, short: Value): Value {
  return isShort ? short : full;
}
