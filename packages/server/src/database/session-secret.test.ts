import type { Disk, MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { SessionPasswords } from '../core/sessions/index.ts'
import { RecoveryError } from '../persistence/index.ts'
import { loadSessionPasswords, readSessionSecret, SharedSessionSecret } from './session-secret.ts'
import { DatabaseFixture } from './testing/database-fixture.ts'

const PATH = '/data/session.secret'
const HEX = '07'.repeat(32)
const BYTES = new Uint8Array(32).fill(7)
/** Milliseconds since 1970, after the sessions that the tests call older. */
const SINCE = 1_790_000_000_000

const textOf = async (disk: MemoryDisk): Promise<string> =>
  new TextDecoder().decode(await disk.readFile(PATH))

async function diskWith(content: string, path = PATH): Promise<MemoryDisk> {
  const disk = await diskWithFolder('/data')
  await disk.replaceFile(path, new TextEncoder().encode(content))
  return disk
}

/** Returns the options of each write of a file from now on. */
function recordWrites(disk: MemoryDisk): unknown[] {
  const written: unknown[] = []
  const write = disk.replaceFile.bind(disk)
  const replaceFile: Disk['replaceFile'] = (path, bytes, options) => {
    written.push(options)
    return write(path, bytes)
  }
  Object.assign(disk, { replaceFile })
  return written
}

interface Server {
  readonly isMember?: boolean
  readonly hasSessions?: boolean
  readonly sessionSecretEnabled?: boolean
  readonly sessionSecretFile?: string
}

/** Loads the passwords of a server that starts on a disk. Returns them and the warnings of the start. */
async function load(
  disk: MemoryDisk,
  { isMember = false, hasSessions = false, sessionSecretEnabled = true, sessionSecretFile }: Server = {},
): Promise<[SessionPasswords, string[]]> {
  const fixture = new DatabaseFixture(disk)
  const settings = { dataDir: '/data', sessionSecretEnabled, sessionSecretFile }
  const passwords = await loadSessionPasswords(settings, fixture.platform(), { isMember, hasSessions })
  return [passwords, fixture.logLines]
}

const loadShared = (disk: MemoryDisk): Promise<SharedSessionSecret> =>
  SharedSessionSecret.load('/data', new DatabaseFixture(disk).platform())

const apache = new SessionPasswords(undefined)

describe('the secret of a standalone server', () => {
  it('is made at its first start, readable by the server alone, and used again at the next', async () => {
    const disk = await diskWithFolder('/data')
    const written = recordWrites(disk)
    const [first] = await load(disk)
    expect(written).toEqual([{ isSecret: true }])
    const content = await textOf(disk)
    expect(content).toMatch(/^secret=[\da-f]{64}\nsince=never\n$/)
    expect(first.passwordFor(5n)).not.toEqual(apache.passwordFor(5n))
    const [second] = await load(disk, { hasSessions: true })
    expect(second.passwordFor(5n)).toEqual(first.passwordFor(5n))
    expect([await textOf(disk), written.length]).toEqual([content, 1])
  })

  it('is made and kept where sessionSecretFile was used before', async () => {
    const disk = await diskWith('since=never\n')
    const [first] = await load(disk)
    expect(await textOf(disk)).toMatch(/^secret=[\da-f]{64}\nsince=never\n$/)
    expect((await load(disk))[0].passwordFor(5n)).toEqual(first.passwordFor(5n))
  })

  it('accepts passwords that follow from ids only for sessions from before its first use', async () => {
    const disk = await diskWithFolder('/data')
    const [without] = await load(disk)
    expect(without.matches(5n, apache.passwordFor(5n))).toBe(false)
    const older = await diskWithFolder('/data')
    await load(older, { hasSessions: true })
    expect(await textOf(older)).toMatch(/^secret=[\da-f]{64}\nsince=\d+\n$/)
    const [used] = await load(await diskWith(`secret=${HEX}\nsince=${SINCE}\n`))
    const idOf = (time: number): bigint => (1n << 56n) | ((BigInt(time) & 0xff_ffff_ffffn) << 16n)
    const accepted = [SINCE - 1, SINCE].map((time) =>
      used.matches(idOf(time), apache.passwordFor(idOf(time))),
    )
    expect(accepted).toEqual([true, false])
  })

  it('is used from now on where members had not used it yet', async () => {
    const disk = await diskWith(`secret=${HEX}\nsince=unused\ngeneration=4\n`)
    const [passwords] = await load(disk)
    expect(passwords.passwordFor(5n)).toEqual(
      new SessionPasswords({ bytes: BYTES, since: undefined }).passwordFor(5n),
    )
    expect(await textOf(disk)).toBe(`secret=${HEX}\nsince=never\n`)
  })

  it.each([
    ['sessionSecretEnabled=false', { sessionSecretEnabled: false }, 'Remove sessionSecretEnabled=false'],
    ['the server is a member without sessionSecretFile', { isMember: true }, 'set sessionSecretFile'],
  ])('is not made when %s, and a warning says what follows', async (_, server, advice) => {
    const disk = await diskWithFolder('/data')
    const [passwords, warnings] = await load(disk, server)
    expect(passwords.passwordFor(5n)).toEqual(apache.passwordFor(5n))
    expect(await disk.exists(PATH)).toBe(false)
    expect(warnings).toEqual([expect.stringContaining(advice)])
  })

  it.each([
    '',
    'since=never',
    `secret=${HEX.slice(1)}\nsince=never\n`,
    `secret=${HEX}\nsince=soon\n`,
    `secret=${HEX}\nsince=never\ngeneration=\n`,
    `secret=${HEX}\nsince=never\nmore`,
    `more\nsecret=${HEX}\nsince=never\n`,
  ])('is not replaced when its file has other content (%j)', async (content) => {
    const disk = await diskWith(content)
    for (const loading of [load(disk), loadShared(disk)]) {
      await expect(loading).rejects.toThrow(RecoveryError)
      await expect(loading).rejects.toThrow('Expected lines secret=… and since=…')
    }
    expect(await textOf(disk)).toBe(content)
  })
})

describe('sessionSecretFile', () => {
  const file = '/data/shared'

  it.each([false, true])('holds the secret of each server that names it (member: %s)', async (isMember) => {
    const disk = await diskWith('  sixteen letters!\n', file)
    const [passwords] = await load(disk, { isMember, sessionSecretFile: file })
    const bytes = new TextEncoder().encode('sixteen letters!')
    expect(passwords.passwordFor(5n)).toEqual(
      new SessionPasswords({ bytes, since: undefined }).passwordFor(5n),
    )
    // The file in dataDir records only since when it is used.
    expect(await textOf(disk)).toBe('since=never\n')
    await load(disk, { isMember, sessionSecretFile: file, hasSessions: true })
    expect(await textOf(disk)).toBe('since=never\n')
  })

  it('is refused when it is missing or has fewer than 16 bytes', async () => {
    const disk = await diskWith('fifteen letters\n', file)
    await expect(readSessionSecret(file, disk)).rejects.toThrow(
      'at least 16 bytes (sessionSecretFile), got 15',
    )
    await expect(readSessionSecret('/data/other', disk)).rejects.toThrow('got no file')
  })
})

describe('the secret that members share', () => {
  it('is made by a member without one, durably, and is not used yet', async () => {
    const disk = await diskWithFolder('/data')
    const written = recordWrites(disk)
    const shared = await loadShared(disk)
    expect(written).toEqual([{ isSecret: true }])
    expect(shared.current).toMatchObject({ generation: 0, since: undefined })
    expect(shared.passwords.passwordFor(5n)).toEqual(apache.passwordFor(5n))
    expect(await textOf(disk)).toMatch(/^secret=[\da-f]{64}\nsince=unused\ngeneration=0\n$/)
    expect((await loadShared(disk)).current).toEqual(shared.current)
  })

  it('is used once it has a time, by which it is loaded at the next start', async () => {
    const disk = await diskWithFolder('/data')
    const shared = await loadShared(disk)
    const adopting = [0, SINCE].map((since) => shared.adopt({ generation: 34, bytes: BYTES, since }))
    expect(shared.passwords.hasSecret).toBe(true)
    await Promise.all(adopting)
    expect(await textOf(disk)).toBe(`secret=${HEX}\nsince=${SINCE}\ngeneration=34\n`)
    expect((await loadShared(disk)).current).toEqual({ generation: 34, bytes: BYTES, since: SINCE })
  })

  it('is that of a standalone server that becomes a member, used since its first session', async () => {
    const { current, passwords } = await loadShared(await diskWith(`secret=${HEX}\nsince=never\n`))
    expect([current, passwords.hasSecret]).toEqual([{ generation: 1, bytes: BYTES, since: 0 }, true])
  })

  it('is written in order, also after a write that failed', async () => {
    const disk = await diskWithFolder('/data')
    const shared = await loadShared(disk)
    disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    const failed = shared.adopt({ generation: 1, bytes: BYTES, since: 1 })
    await expect(failed).rejects.toMatchObject({ code: 'EIO' })
    disk.injectFault = undefined
    await shared.adopt({ generation: 2, bytes: BYTES, since: 2 })
    expect(await textOf(disk)).toBe(`secret=${HEX}\nsince=2\ngeneration=2\n`)
  })
})
