/** The table of settings as a list, with the names that each has in the file, on the command line and among the variables. */
import type { Setting } from './setting.ts';
import { settings, tenantSettings } from './settings.ts';

export interface SettingRow {
  /** `listen.dataPort`. */
  readonly path: string;
  /** `listen.data_port`. */
  readonly key: string;
  /** `--data-port`. */
  readonly flag: string;
  /** `SLIPWAY_LISTEN_DATA_PORT`. */
  readonly variable: string;
  readonly setting: Setting<unknown>;
}

type Tree = { readonly [name: string]: Tree | Setting<unknown> };

/** In the order of the table: a derived default sees the settings before its own. */
export const settingRows: readonly SettingRow[] = rowsOf(settings, [], []);
export const tenantRows: readonly SettingRow[] = rowsOf(tenantSettings, [], []);

/** Keys of the file that are tables. */
export const sectionKeys: ReadonlySet<string> = new Set(
  settingRows.flatMap(({ key }) => {
    const parts = key.split('.');
    return parts.slice(0, -1).map((_, at) => parts.slice(0, at + 1).join('.'));
  }),
);

function rowsOf(tree: Tree, path: readonly string[], keys: readonly string[]): SettingRow[] {
  return Object.entries(tree).flatMap(([name, node]) => {
    const inPath = [...path, name];
    if (!isSetting(node)) return rowsOf(node, inPath, [...keys, snake(name)]);
    const inKeys = [...keys, node.key ?? snake(name)];
    const words = inKeys.join('_');
    return {
      path: inPath.join('.'),
      key: inKeys.join('.'),
      flag: `--${node.flag ?? words.replaceAll('_', '-')}`,
      variable: `SLIPWAY_${words.toUpperCase()}`,
      setting: node,
    };
  });
}

function isSetting(node: Tree | Setting<unknown>): node is Setting<unknown> {
  return typeof (node as Partial<Setting<unknown>>).what === 'string';
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
