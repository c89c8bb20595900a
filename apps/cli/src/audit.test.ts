import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodePlatform } from '@zabra/runtime/node'
import { createServer, defaults, type Server } from '@zabra/server/core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openSession } from './session/open.ts'
import { ClientTransport } from './session/transport.ts'
import { CommandRun, type RunResult } from './testing/cli-fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'zabra-audit-'))
/** The files of a server that was restarted and has renamed one of them, the oldest first. */
let written: string[][]
let files: string[]
let copy = 0

const pathsIn = (name: string): string[] => ['.1', ''].map((suffix) => join(name, `audit.log${suffix}`))

const start = (): Promise<Server> =>
  createServer(
    defaults({
      dataDir: join(folder, 'data'),
      clientPort: 0,
      auditEnabled: true,
      auditFormat: 'json',
      auditChain: true,
      auditFile: join(folder, 'audit.log'),
      auditFileMaxBytes: 4096,
      auditFileCount: 1,
    }),
    nodePlatform(),
  )

/** Serves a client that creates nodes. */
async function serve(names: readonly string[]): Promise<void> {
  const server = await start()
  const options = {
    server: `127.0.0.1:${server.addresses.client.port}`,
    auth: [],
    timeoutMs: 10_000,
    clientTransport: new ClientTransport(),
  }
  const zk = await openSession(options, new AbortController().signal)
  await Promise.all(names.map((name) => zk.create(`/${name}`, { data: null })))
  await zk.close()
  await server.close()
}

const run = (...argv: string[]): Promise<RunResult> => new CommandRun(argv, undefined, { input: '' }).ended

const verify = (...argv: string[]): Promise<RunResult> => run('audit', 'verify', ...argv)

/** Changes the lines of one of the files. */
function damage(file: number, change: (lines: string[]) => unknown): void {
  const lines = [...written[file]!]
  change(lines)
  writeFileSync(files[file]!, lines.map((line) => `${line}\n`).join(''))
}

beforeAll(async () => {
  await serve(['a', 'b', 'c', 'd', 'e'])
  await serve(Array.from({ length: 5 }, (_, i) => `n${i}`))
  written = pathsIn(folder).map((path) => readFileSync(path, 'utf8').trimEnd().split('\n'))
})

beforeEach(() => {
  const into = join(folder, `copy-${copy++}`)
  mkdirSync(into)
  files = pathsIn(into)
  for (const index of written.keys()) damage(index, () => {})
})

afterAll(() => rmSync(folder, { recursive: true }))

describe('audit verify', () => {
  it('follows the lines that a server wrote over a restart and a rotation, whatever the order of the files', async () => {
    const lines = written[0]!.length + written[1]!.length
    const { code, out } = await verify(...files.toReversed())
    expect(code).toBe(0)
    expect(out).toMatch(
      new RegExp(`^${lines} lines in 2 files: each follows the one before\nhead [0-9a-f]{64}\n$`),
    )
    expect(lines).toBe(14)
  })

  it('names the first line that was changed, is missing or was inserted, by its file and number', async () => {
    const [old, current] = files as [string, string]
    damage(0, (lines) => (lines[1] = lines[1]!.replace('"success"', '"failure"')))
    expect(await verify(old, current)).toMatchObject({
      code: 17,
      err: expect.stringContaining(`${old}:2 was changed`) as string,
    })
    damage(0, (lines) => lines.splice(1, 1))
    expect(await verify(old, current)).toMatchObject({
      code: 17,
      err: expect.stringContaining(`Lines before ${old}:2 are missing`) as string,
    })
    damage(0, (lines) => lines.splice(1, 0, '{"op":"create"}'))
    expect(await verify(old, current)).toMatchObject({
      code: 17,
      err: expect.stringContaining(`${old}:2 has no hash`) as string,
    })
  })

  it('names the line before a restart where one between them is missing', async () => {
    const all = written.flatMap((lines, file) => lines.map((line, index) => ({ file, index, line })))
    const restart = all.findLastIndex(({ line }) => line.includes('"op":"serverStart"'))
    const [last, removed] = all.slice(restart - 2) as [(typeof all)[0], (typeof all)[0]]
    damage(removed.file, (lines) => lines.splice(removed.index, 1))
    expect(await verify(...files)).toMatchObject({
      code: 17,
      out: '',
      err: expect.stringContaining(
        `${files[last.file]}:${last.index + 1} was changed since it was written, or`,
      ) as string,
    })
  })

  it('reports a torn last line, which is no fault', async () => {
    appendFileSync(files[1]!, '{"prev":"00')
    const { code, out, err } = await verify(...files)
    expect([code, err]).toEqual([
      0,
      `zabra: ${files[1]}:${written[1]!.length + 1} is torn: a crash or a full disk has cut it off.\n`,
    ])
    expect(out).toContain('each follows the one before')
  })

  it('says that the file begins behind a line that is not there', async () => {
    const { code, err } = await verify(files[1]!)
    expect(code).toBe(0)
    expect(err).toMatch(
      /^zabra: The first line follows one that is not in these files, with the hash \w{64}\.\n$/,
    )
  })

  it('demands a head that was kept elsewhere, which a chain that was calculated again does not have', async () => {
    const head = /head (\w+)/.exec((await verify(files[0]!)).out)![1]!
    const found = await verify('--head', head, ...files)
    expect(found).toMatchObject({
      code: 0,
      out: expect.stringContaining(`is ${files[0]}:${written[0]!.length}\n`) as string,
    })
    const lost = await verify('--head', 'a'.repeat(64), ...files)
    expect(lost).toMatchObject({
      code: 17,
      err: expect.stringContaining('No line has the hash aaaa') as string,
    })
    expect((await verify('--head', 'short', ...files)).code).toBe(2)
  })

  it('prints one object with --json', async () => {
    const { out } = await verify('--json', ...files)
    expect(JSON.parse(out)).toMatchObject({
      lines: 14,
      unlinkedLines: 0,
      first: '0'.repeat(64),
      torn: [],
      fault: null,
    })
    damage(0, (lines) => lines.splice(1, 1))
    const { code, out: damaged } = await verify('--json', ...files)
    expect([code, JSON.parse(damaged)]).toMatchObject([
      17,
      { head: null, fault: { file: files[0], line: 2, kind: 'missing' } },
    ])
  })

  it('refuses lines without hashes, and files that are not there', async () => {
    writeFileSync(files[1]!, '{"op":"create"}\n')
    expect(await verify(files[1]!)).toMatchObject({
      code: 17,
      err: expect.stringContaining('audit.chain=true') as string,
    })
    expect((await verify(join(folder, 'none'))).code).toBe(2)
  })
})
