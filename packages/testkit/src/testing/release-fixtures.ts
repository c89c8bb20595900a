// oxlint-disable-next-line no-restricted-imports -- tests read and write the fixtures
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { MemoryDisk } from '@zabra/runtime'

const folder = new URL('../../../server/fixtures/', import.meta.url)

/** The release whose files and packets are to be written; undefined in an ordinary run of the tests. */
export const writtenRelease = process.env['ZABRA_RELEASE']

/** The releases whose files and packets are kept. */
export const releases: readonly string[] = readdirSync(folder)
  .filter((name) => name !== writtenRelease)
  .toSorted()

export const readFixture = <T>(release: string, name: string): T =>
  JSON.parse(readFileSync(new URL(`${release}/${name}.json`, folder), 'utf8')) as T

/** Writes a fixture of `writtenRelease`. Throws when there is one: those of a release that is out never change. */
export function writeFixture(name: string, fixture: unknown): void {
  const target = new URL(`${writtenRelease!}/`, folder)
  mkdirSync(target, { recursive: true })
  const file = new URL(`${name}.json`, target)
  if (existsSync(file))
    throw new Error(
      `Expected no ${file.pathname}. Remove its folder, unless release ${writtenRelease} is out.`,
    )
  writeFileSync(file, `${JSON.stringify(fixture, undefined, 2)}\n`)
}

export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
export const fromHex = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))

/** Puts the files of a fixture on a disk. */
export function putFiles(disk: MemoryDisk, files: Readonly<Record<string, string>>): void {
  for (const [path, hex] of Object.entries(files)) disk.putFile(path, fromHex(hex))
}

/** Returns a value as it is read from a fixture: bytes as hexadecimal digits, bigints with an n. */
export const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, part: unknown) =>
      typeof part === 'bigint' ? `${part}n` : part instanceof Uint8Array ? toHex(part) : part,
    ) ?? 'null',
  )
