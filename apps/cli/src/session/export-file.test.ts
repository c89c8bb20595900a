import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { nodePlatform } from '@zabra/runtime/node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { UsageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { CapturedOutput } from '../testing/cli-fixture.ts'
import { ExportFile } from './export-file.ts'
import { EXPORT_HEAD, exportEnd, formatNode } from './export-format.ts'

const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }]
const nodes = [
  { path: '/', data: null, acl },
  { path: '/größe', data: new TextEncoder().encode('naïve\nтекст'), acl },
  { path: '/bytes', data: new Uint8Array([0, 255, 10, 13]), acl },
  { path: '/long', data: new Uint8Array(5000).fill(120), acl },
]
const text = [
  JSON.stringify({ ...EXPORT_HEAD, root: '/from' }),
  ...nodes.map(formatNode),
  JSON.stringify(exportEnd(nodes.length)),
  '',
].join('\n')

let folder: string
let file: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'zabra-export-file-'))
  file = join(folder, 'e.jsonl')
  writeFileSync(file, text)
})
afterAll(() => rmSync(folder, { recursive: true }))

const io = (input: string | Uint8Array = '', signal = new AbortController().signal): Io => ({
  stdin: Readable.from([Buffer.from(input)]),
  stdout: new CapturedOutput(),
  stderr: new CapturedOutput(),
  environment: {},
  version: '1',
  signal,
  platform: nodePlatform(),
})

async function contents(source: ExportFile): Promise<(readonly [string, Uint8Array | null])[]> {
  const found = await source.nodes(new AbortController().signal)
  return Promise.all(found.map(async (node) => [node.path, await source.readData(node)] as const))
}

const expected = nodes.map(({ path, data }) => [path, data])

describe('an export read from a file', () => {
  it.each([1, 2, 3, 7, 64, 4096, 1 << 20])('has the same nodes with reads of %d bytes', async (chunk) => {
    const source = await ExportFile.open(io(), file, chunk)
    expect(await contents(source)).toEqual(expected)
    expect(source.root).toBe('/from')
    await source.close()
  })

  it('may end without a newline', async () => {
    const short = join(folder, 'short.jsonl')
    writeFileSync(short, text.trimEnd())
    const source = await ExportFile.open(io(), short, 100)
    expect(await contents(source)).toEqual(expected)
    await source.close()
  })

  it('may come through a pipe, and leaves no temporary file behind', async () => {
    const kept = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('zabra-import-'))
    const before = kept()
    const source = await ExportFile.open(io(text), '-')
    expect(await contents(source)).toEqual(expected)
    await source.close()
    expect(kept().filter((name) => !before.includes(name))).toEqual([])
  })

  it.runIf(existsSync('/proc/self/fd'))('stays not open if it is a folder', async () => {
    await expect(ExportFile.open(io(), folder)).rejects.toThrow(`Cannot read ${folder} (EISDIR)`)
    const open = readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)]
      } catch {
        return []
      }
    })
    expect(open).not.toContain(folder)
  })

  it('keeps no data in memory, and one access list for all nodes with the same', async () => {
    const source = await ExportFile.open(io(), file)
    const found = await source.nodes(new AbortController().signal)
    expect(found.every((node) => !('data' in node))).toBe(true)
    expect(new Set(found.map((node) => node.acl)).size).toBe(1)
    await source.close()
  })

  it('that changes during the import is refused', async () => {
    const changing = join(folder, 'changing.jsonl')
    writeFileSync(changing, text)
    const source = await ExportFile.open(io(), changing)
    const found = await source.nodes(new AbortController().signal)
    writeFileSync(changing, text.replaceAll('/größe', '/kleine').slice(0, -3000))
    for (const node of found.slice(1))
      await expect(source.readData(node)).rejects.toThrow(/Expected an unchanged file/)
    await source.close()
  })

  it('stops reading on abort', async () => {
    const source = await ExportFile.open(io(), file)
    await expect(source.nodes(AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
    await source.close()
    await expect(ExportFile.open(io(text, AbortSignal.abort(new Error('stopped'))), '-')).rejects.toThrow(
      'stopped',
    )
  })

  it.each([
    ['/no/such/file', /Cannot read \/no\/such\/file \(ENOENT\)/],
    [tmpdir(), /\(EISDIR\)/],
  ])('refuses %s', async (name, message) => {
    await expect(ExportFile.open(io(), name)).rejects.toThrow(message)
    await expect(ExportFile.open(io(), name)).rejects.toBeInstanceOf(UsageError)
  })

  it('names the line of bytes that are not UTF-8', async () => {
    const source = await ExportFile.open(
      io(Buffer.concat([Buffer.from('\n'), Buffer.from([0xff, 0x0a])])),
      '-',
    )
    await expect(source.nodes(new AbortController().signal)).rejects.toThrow(/^standard input:2: .*UTF-8/)
    await source.close()
  })
})
