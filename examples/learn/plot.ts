/** Rewards by step, for a terminal and as an SVG file. */

const marks = ' ▁▂▃▄▅▆▇█';

/** One character per step, at most `width` of them; 0 is blank and 1 is full. */
export function sparkline(values: readonly number[], width = 60): string {
  const per = Math.max(1, Math.ceil(values.length / width));
  const means: number[] = [];
  for (let at = 0; at < values.length; at += per) {
    const part = values.slice(at, at + per);
    means.push(part.reduce((sum, value) => sum + value, 0) / part.length);
  }
  return means.map((mean) => marks[Math.round(mean * (marks.length - 1))] ?? ' ').join('');
}

export interface Curve {
  readonly name: string;
  readonly values: readonly number[];
}

const size = { width: 640, height: 360, left: 48, right: 150, top: 24, bottom: 40 };
const colours = ['#1668a8', '#2a8c4a', '#c0392b', '#8e6bbf'];

export function plotSvg(title: string, curves: readonly Curve[]): string {
  const steps = Math.max(2, ...curves.map(({ values }) => values.length));
  const x = (step: number) =>
    size.left + (step / (steps - 1)) * (size.width - size.left - size.right);
  const y = (value: number) => size.top + (1 - value) * (size.height - size.top - size.bottom);
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (value) =>
      `<line x1="${x(0)}" x2="${x(steps - 1)}" y1="${y(value)}" y2="${y(value)}" stroke="#ddd"/>` +
      `<text x="${size.left - 8}" y="${y(value) + 4}" text-anchor="end">${value}</text>`,
  );
  const lines = curves.map(({ name, values }, index) => {
    const colour = colours[index % colours.length] ?? '#000';
    const points = values.map((value, step) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`);
    return (
      `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${points.join(' ')}"/>` +
      `<text x="${x(steps - 1) + 10}" y="${size.top + 16 + 18 * index}" fill="${colour}">${name}</text>`
    );
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="#fff"/><text x="${size.left}" y="16" font-size="14">${title}</text>`,
    ...grid,
    ...lines,
    `<text x="${x((steps - 1) / 2)}" y="${size.height - 10}" text-anchor="middle">updates</text>`,
    '</svg>\n',
  ].join('\n');
}
