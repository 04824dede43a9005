/** Complex numbers, as far as answers to exercises need them. */

export interface Complex {
  readonly re: number;
  readonly im: number;
}

export const real = (re: number): Complex => ({ re, im: 0 });

export const size = (value: Complex): number => Math.hypot(value.re, value.im);

export function add(left: Complex, right: Complex): Complex {
  return { re: left.re + right.re, im: left.im + right.im };
}

export function negative(value: Complex): Complex {
  return { re: -value.re, im: -value.im };
}

export function multiply(left: Complex, right: Complex): Complex {
  return {
    re: left.re * right.re - left.im * right.im,
    im: left.re * right.im + left.im * right.re,
  };
}

export function divide(left: Complex, right: Complex): Complex {
  const square = right.re ** 2 + right.im ** 2;
  const over = multiply(left, { re: right.re, im: -right.im });
  return { re: over.re / square, im: over.im / square };
}

/** The principal value. */
export function logarithm(value: Complex): Complex {
  return { re: Math.log(size(value)), im: Math.atan2(value.im, value.re) };
}

/** The principal value. */
export function power(base: Complex, exponent: Complex): Complex {
  if (exponent.im === 0 && Number.isInteger(exponent.re) && Math.abs(exponent.re) <= 64)
    return wholePower(base, exponent.re);
  if (size(base) === 0) return real(exponent.re > 0 ? 0 : Number.NaN);
  const { re, im } = multiply(exponent, logarithm(base));
  return { re: Math.exp(re) * Math.cos(im), im: Math.exp(re) * Math.sin(im) };
}

function wholePower(base: Complex, exponent: number): Complex {
  let value = real(1);
  for (let count = Math.abs(exponent); count > 0; count--) value = multiply(value, base);
  return exponent < 0 ? divide(real(1), value) : value;
}
