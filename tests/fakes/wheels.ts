/** Packages of one module each, as wheels that pip installs: built on the spot, by Python's own zip. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

export interface Wheel {
  /** Of the package and of its module, which has `WORD`. */
  readonly name: string;
  readonly version: string;
  /** As pip reads them. */
  readonly needs?: readonly string[];
  /** File of a program that it brings. */
  readonly program?: string;
}

const script = `
import json, sys, zipfile
folder, wheels = sys.argv[1], json.loads(sys.argv[2])
for wheel in wheels:
    name, version = wheel["name"], wheel["version"]
    kept = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\\n" for each in wheel.get("needs", []))
    files = {
        f"{name}.py": f"WORD = '{name} {version}'\\n",
        f"{kept}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{needs}",
        f"{kept}/WHEEL": "Wheel-Version: 1.0\\nGenerator: tests\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[f"{kept}/RECORD"] = "".join(f"{file},,\\n" for file in [*files, f"{kept}/RECORD"])
    with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
        if "program" in wheel:
            entry = zipfile.ZipInfo(wheel["program"])
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, "#!/bin/sh")
`;

/** `dir`: absolute, and there. */
export function writeWheels(dir: string, wheels: readonly Wheel[]): void {
  const { status, stderr } = spawnSync('python3', ['-c', script, dir, JSON.stringify(wheels)], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
}
