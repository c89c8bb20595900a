import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'vitest'
import { run, scratch } from './servers.ts'

const root = resolve(import.meta.dirname, '../../../..')
/** The longest pack or installation, on a busy machine too. */
const timeoutMs = 200_000
/** The time limit for a hook that makes a packed application. */
export const PACKING_MS = 2 * timeoutMs + 60_000

/** Installs packages of this repository from packed tarballs into an empty application, as a user does. Resolves to its folder. */
export async function packedApp(
  packages = ['packages/runtime', 'packages/protocol', 'packages/client', 'packages/recipes'],
): Promise<string> {
  const folder = scratch('tarballs')
  // One process packs all of them: starting pnpm costs more than packing.
  const filters = packages.map((folder) => {
    const manifest = readFileSync(join(root, folder, 'package.json'), 'utf8')
    return `--filter=${(JSON.parse(manifest) as { name: string }).name}`
  })
  const pack = ['--dir', root, '--recursive', ...filters, 'pack', '--pack-destination', folder]
  const packed = await run('pnpm', pack, { timeoutMs })
  expect(packed.code, packed.output).toBe(0)
  const tarballs = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
  expect(tarballs).toHaveLength(packages.length)
  const app = join(folder, 'app')
  mkdirSync(app)
  writeFileSync(join(app, 'package.json'), '{ "name": "app", "private": true }')
  const args = ['--prefix', app, 'install', '--no-audit', '--no-fund']
  const installed = await run('npm', [...args, ...tarballs.map((name) => join(folder, name))], { timeoutMs })
  expect(installed.code, installed.output).toBe(0)
  return app
}
