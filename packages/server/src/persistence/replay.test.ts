import { adler32, OpCode, Writer } from '@zabra/protocol'
import { MemoryDisk, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { Tree } from '../core/tree/index.ts'
import type { Digest, LoggedTxn, Txn, Zxid } from '../core/types.ts'
import { DamageError, DivergedFilesError, RecoveryError } from './errors.ts'
import { logsIn } from './file-names.ts'
import { ENTRY_HEAD_BYTES, LOG_HEADER_BYTES, writeLogHeader } from './log-format.ts'
import type { LoadedSnapshot } from './snapshot-reader.ts'
import { Replay, type ReplayOptions } from './replay.ts'
import { createTxn, FOLDER, newTree, payloadOf, writeEntry } from './testing/log-fixture.ts'

const EPOCH_1 = 0x1_0000_0001
/** Bytes of an entry of `createTxn`. */
const ENTRY = payloadOf(createTxn(1)).length + ENTRY_HEAD_BYTES + 1
const WRONG: Digest = { hi: 1, lo: 2 }

/** Returns the bytes of a log. */
function logOf(...entries: readonly (Zxid | LoggedTxn)[]): Uint8Array {
  const writer = new Writer()
  writeLogHeader(writer)
  for (const entry of entries) writeEntry(writer, typeof entry === 'number' ? createTxn(entry) : entry)
  return writer.take()
}

/** Returns a tree with the transactions from 1 to `last`. */
function treeUpTo(last: Zxid): Tree {
  const tree = newTree()
  for (let zxid = 1; zxid <= last; zxid++) tree.apply(createTxn(zxid).header, createTxn(zxid).txn)
  return tree
}

const digestAfter = (last: Zxid): Digest => treeUpTo(last).digest!
const withDigest = (zxid: Zxid, digest: Digest = WRONG): LoggedTxn => ({ ...createTxn(zxid), digest })
const inSession = (zxid: Zxid, sessionId: bigint, txn: Txn): LoggedTxn => ({
  header: { sessionId, cxid: 1, zxid, time: 1 },
  txn,
  digest: undefined,
})

interface Files {
  readonly logs: Readonly<Record<string, Uint8Array>>
  readonly snapshot?: Partial<LoadedSnapshot>
  readonly tree?: Tree
  readonly upTo?: Zxid
  readonly pause?: ReplayOptions['pause']
}

/** A replay of logs after a snapshot, with what was logged. */
function given({ logs, snapshot, upTo = Infinity, pause, tree = treeUpTo(snapshot?.zxid ?? 0) }: Files) {
  const disk = new MemoryDisk()
  for (const [name, bytes] of Object.entries(logs)) disk.putFile(`${FOLDER}/${name}`, bytes)
  const lines: [level: string, context: unknown, text: string][] = []
  const logger = {
    ...silentLogger,
    info: (context: unknown, text: string) => void lines.push(['info', context, text]),
    warn: (context: unknown, text: string) => void lines.push(['warn', context, text]),
  }
  const loaded: LoadedSnapshot | undefined = snapshot && {
    nodesWithoutAcl: [],
    zxid: 0,
    nodes: 0,
    sessions: new SessionMap(),
    digest: undefined,
    lastZxid: undefined,
    ...snapshot,
  }
  const create = (): Replay => new Replay({ disk, logger, folder: FOLDER, upTo, pause }, tree, loaded)
  return { disk, lines, tree, create, files: logsIn(Object.keys(logs)) }
}

/** Replays the logs. */
async function replay(given_: Files) {
  const setting = given(given_)
  const result = setting.create()
  await result.run(setting.files)
  return { ...setting, result }
}

const failureOf = async (files: Files): Promise<unknown> => replay(files).catch((error: unknown) => error)

describe('Replay', () => {
  const logs = { 'log.1': logOf(1, 2, 3), 'log.4': logOf(4, 5, 6), 'log.7': logOf(7, 8, 9) }

  it.each([
    [2, ['log.1', 'log.4', 'log.7']],
    [3, ['log.4', 'log.7']],
    [4, ['log.4', 'log.7']],
    [9, ['log.7']],
  ])('after a snapshot of %i reads %j', async (zxid, read) => {
    const { result, tree } = await replay({ logs, snapshot: { zxid } })
    expect(result.readFiles).toEqual(read)
    expect([result.appliedCount, tree.lastZxid]).toEqual([9 - zxid, 9])
    expect([result.logRange.after, result.logRange.upTo]).toEqual([zxid, 9])
    expect(tree.digest).toEqual(digestAfter(9))
  })

  it('accepts logs that begin anywhere when there is no snapshot', async () => {
    const { result, tree } = await replay({ logs: { 'log.5': logOf(5, 6), 'log.7': logOf(7) } })
    expect([result.appliedCount, tree.lastZxid, result.readFiles]).toEqual([3, 7, ['log.5', 'log.7']])
  })

  it('accepts that there is no log', async () => {
    const { result, disk } = await replay({ logs: {} })
    await result.repairAndSync()
    expect([result.appliedCount, result.readFiles, disk.paths()]).toEqual([0, [], []])
  })

  it.each<[string, Files, number, string]>([
    ['after a snapshot', { logs: { 'log.5': logOf(5) }, snapshot: { zxid: 2 } }, 3, '5'],
    ['of an empty tree', { logs: { 'log.2': logOf(2) }, snapshot: { zxid: 0 } }, 1, '2'],
    ['between two logs', { logs: { 'log.1': logOf(1, 2), 'log.4': logOf(4) } }, 3, '4'],
    ['in a log', { logs: { 'log.1': logOf(1, 3) } }, 2, '3'],
    ['at a new epoch', { logs: { 'log.1': logOf(1, EPOCH_1 + 1) } }, 2, '100000002'],
    ['behind entries of the snapshot', { logs: { 'log.1': logOf(1, 2, 4) }, snapshot: { zxid: 2 } }, 3, '4'],
    ['behind an entry without a zxid', { logs: { 'log.0': logOf(0, 2) } }, 1, '2'],
    ['above the limit', { logs: { 'log.1': logOf(1, 2, 4) }, upTo: 1 }, 3, '4'],
  ])('rejects a gap %s', async (_, files, expected, got) => {
    const failure = (await failureOf(files)) as DamageError
    expect(failure).toBeInstanceOf(DamageError)
    expect(failure.message).toContain(
      `Expected transaction 0x${expected}, got 0x${got}: transactions are missing`,
    )
    expect(failure.file).toBe(`${FOLDER}/${Object.keys(files.logs).at(-1)!}`)
    expect(failure.action).toContain('Bring the missing log files back')
  })

  it('accepts the first transaction of a later epoch', async () => {
    const { tree } = await replay({ logs: { 'log.1': logOf(1, EPOCH_1) } })
    expect(tree.lastZxid).toBe(EPOCH_1)
  })

  it('applies a repeated entry once, whether the snapshot has it or not', async () => {
    for (const snapshot of [undefined, { zxid: 2 }]) {
      const files = {
        logs: { 'log.1': logOf(1, 2, 3), 'log.2': logOf(2, 3, 4) },
        ...(snapshot && { snapshot }),
      }
      const { result, tree } = await replay(files)
      expect([result.appliedCount, tree.lastZxid]).toEqual([snapshot ? 2 : 4, 4])
    }
  })

  it('rejects another entry of a transaction that was read, whether the snapshot has it or not', async () => {
    const other = { ...createTxn(2), header: { ...createTxn(2).header, cxid: 99 } }
    for (const snapshot of [{ zxid: 0 }, { zxid: 2 }, { zxid: 3 }]) {
      const failure = (await failureOf({ logs: { 'log.1': logOf(1, 2, 3, other) }, snapshot })) as DamageError
      expect(failure.message).toContain('Expected a transaction above 0x3, got another 0x2')
      expect(failure.offset).toBe(LOG_HEADER_BYTES + 3 * ENTRY)
    }
  })

  it('rejects an entry below the first one that was read', async () => {
    expect(String(await failureOf({ logs: { 'log.5': logOf(5, 6, 4) } }))).toContain('got another 0x4')
  })

  it('applies nothing above the limit, and says where that begins', async () => {
    const { result, tree } = await replay({ logs, snapshot: { zxid: 2 }, upTo: 4 })
    expect([result.appliedCount, tree.lastZxid, result.logRange.upTo]).toEqual([2, 4, 4])
    expect(result.firstAboveLimit).toEqual({
      file: 'log.4',
      offset: LOG_HEADER_BYTES + ENTRY,
      zxid: 5,
    })
    expect((await replay({ logs, upTo: 9 })).result.firstAboveLimit).toBe(undefined)
  })

  it('counts the bytes of the transactions after the snapshot', async () => {
    const { result } = await replay({ logs, snapshot: { zxid: 2 } })
    expect(result.logRange.bytesAfter(2)).toBe(7 * (13 + payloadOf(createTxn(1)).length))
  })

  it('keeps the sessions of the snapshot and follows those that begin and end after it', async () => {
    const sessions = new SessionMap([
      [1n, 1000],
      [2n, 2000],
    ])
    const log = logOf(
      inSession(1, 3n, { type: OpCode.createSession, timeOut: 3000 }),
      inSession(2, 1n, { type: OpCode.closeSession, paths2Delete: [] }),
      3,
    )
    const { result } = await replay({ logs: { 'log.1': log }, snapshot: { sessions } })
    expect([...result.sessions]).toEqual([
      [2n, 2000],
      [3n, 3000],
    ])
    expect(sessions.size).toBe(2)
  })

  it('rejects an entry whose checksum is right and that is no transaction', async () => {
    const log = logOf(1, 2)
    const writer = new Writer()
    writeEntry(writer, createTxn(3))
    const bytes = writer.take()
    // The type, with a checksum that fits.
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    view.setInt32(ENTRY_HEAD_BYTES + 28, 9999)
    view.setUint32(4, adler32(bytes, ENTRY_HEAD_BYTES, bytes.length - 1))
    const failure = (await failureOf({
      logs: { 'log.1': new Uint8Array(Buffer.concat([log, bytes])) },
    })) as DamageError
    expect(failure).toBeInstanceOf(DamageError)
    expect(failure.message).toMatch(/^Expected a transaction \(.*9999.* in .*log\.1 at byte/)
    expect(failure.offset).toBe(log.length)
    expect(failure.cause).toBeInstanceOf(Error)
  })

  it('pauses after each entry', async () => {
    let pauses = 0
    await replay({ logs, pause: () => void pauses++ })
    expect(pauses).toBe(9)
  })
})

describe('the digests in a replay', () => {
  const digest = (zxid: Zxid, value = digestAfter(zxid)): LoadedSnapshot['digest'] => ({ zxid, value })

  it('of the log are compared, without a snapshot and after an empty one', async () => {
    for (const snapshot of [undefined, {}, { digest: digest(0, WRONG) }]) {
      const files = (log: Uint8Array): Files => ({ logs: { 'log.1': log }, ...(snapshot && { snapshot }) })
      const failure = (await failureOf(files(logOf(1, withDigest(2))))) as Error
      expect(failure).toBeInstanceOf(DivergedFilesError)
      expect(failure.message).toContain('after transaction 0x2 to have the digest that its log gives')
      const { result } = await replay(files(logOf(1, withDigest(2, digestAfter(2)))))
      expect(result.canCompareDigests).toBe(true)
    }
  })

  it('of a snapshot that did not change meanwhile is compared at once', async () => {
    const snapshot = { zxid: 2, digest: digest(2) }
    expect((await replay({ logs: {}, snapshot })).result.canCompareDigests).toBe(true)
    expect(() => given({ logs: {}, snapshot: { zxid: 2, digest: digest(2, WRONG) } }).create()).toThrow(
      /after transaction 0x2 to have the digest that its snapshot gives/,
    )
    const failure = await failureOf({ logs: { 'log.1': logOf(1, 2, withDigest(3)) }, snapshot })
    expect(failure).toBeInstanceOf(DivergedFilesError)
  })

  it.each([0, 2])('of a snapshot of %i that changed meanwhile is compared at its end alone', async (zxid) => {
    const log = logOf(withDigest(1), withDigest(2), withDigest(3), withDigest(4))
    const snapshot = { zxid, digest: digest(4) }
    const { result } = await replay({ logs: { 'log.1': log }, snapshot })
    expect(result.canCompareDigests).toBe(true)
    const failure = (await failureOf({
      logs: { 'log.1': log },
      snapshot: { zxid, digest: digest(4, WRONG) },
    })) as Error
    expect(failure.message).toContain('after transaction 0x4 to have the digest that its snapshot gives')
    const later = logOf(withDigest(1), withDigest(2), withDigest(3), withDigest(4), withDigest(5))
    expect(String(await failureOf({ logs: { 'log.1': later }, snapshot }))).toContain(
      'after transaction 0x5 to have the digest that its log gives',
    )
  })

  it('are compared again after an epoch that begins behind the end of a snapshot', async () => {
    const snapshot = { zxid: 2, digest: digest(4, WRONG) }
    const beyond = { logs: { 'log.1': logOf(3, withDigest(EPOCH_1)) }, snapshot }
    expect((await replay(beyond)).result.canCompareDigests).toBe(true)
    const log = logOf(3, withDigest(EPOCH_1), withDigest(EPOCH_1 + 1))
    expect(String(await failureOf({ logs: { 'log.1': log }, snapshot }))).toContain('0x100000002')
  })

  it('are not compared after a snapshot that does not say where it ends', async () => {
    const log = logOf(withDigest(3), withDigest(4))
    for (const snapshot of [{ zxid: 2 }, { zxid: 2, digest: digest(1, WRONG) }]) {
      const { result, tree } = await replay({ logs: { 'log.3': log }, snapshot })
      expect([tree.lastZxid, result.canCompareDigests]).toEqual([4, false])
    }
  })

  it('are not compared by a server without digests', async () => {
    const tree = new Tree({ digest: false, extendedTypes: true })
    await replay({ logs: { 'log.1': logOf(withDigest(1)) }, tree })
    expect(tree.lastZxid).toBe(1)
  })

  it('are compared no more once one differs and a path is not ASCII, with one warning', async () => {
    const named = (zxid: Zxid, path: string): LoggedTxn => ({
      ...withDigest(zxid),
      txn: { ...createTxn(zxid).txn, path } as Txn,
    })
    const log = logOf(named(1, '/ä'), named(2, '/b'), named(3, '/c'))
    const { result, lines, tree } = await replay({ logs: { 'log.1': log } })
    expect([tree.lastZxid, result.canCompareDigests]).toEqual([3, false])
    expect(lines).toEqual([
      ['warn', { folder: FOLDER, zxid: '0x1' }, expect.stringContaining('Digests are not checked') as string],
    ])
  })
})

describe('the end of what a snapshot contains in part', () => {
  const log = { 'log.3': logOf(3, 4, 5) }

  it.each<[string, Partial<LoadedSnapshot>, number | undefined]>([
    ['the last transaction', { lastZxid: 6 }, 6],
    ['the last transaction', { lastZxid: 5 }, undefined],
    ['the last transaction', { lastZxid: 6, digest: { zxid: 5, value: digestAfter(5) } }, 6],
    ['the digest', { digest: { zxid: 6, value: WRONG } }, 6],
    ['the digest', { digest: { zxid: 5, value: digestAfter(5) } }, undefined],
    ['nothing', {}, undefined],
  ])('must be in the log (by %s of %j)', async (_, snapshot, missing) => {
    const result = await failureOf({ logs: log, snapshot: { zxid: 2, ...snapshot } })
    if (missing === undefined) return expect(result).not.toBeInstanceOf(Error)
    expect(result).toBeInstanceOf(RecoveryError)
    expect(String(result)).toContain(
      `Expected transactions up to 0x${missing}, which the snapshot contains in part, got them up to 0x5`,
    )
  })
})

describe('the end of a log in a replay', () => {
  const whole = logOf(1, 2, 3)
  const path = `${FOLDER}/log.1`

  it('that a crash cut short is removed durably, with a warning', async () => {
    const { result, lines, disk } = await replay({ logs: { 'log.1': whole.slice(0, -20) } })
    const torn = { file: 'log.1', offset: LOG_HEADER_BYTES + 2 * ENTRY, bytes: ENTRY - 20 }
    expect(result.tornWrites).toEqual([torn])
    expect(lines).toEqual([
      [
        'warn',
        { id: 'recovery.torn-write', ...torn },
        expect.stringContaining('A crash cut a write short') as string,
      ],
    ])
    await result.repairAndSync()
    disk.powerCut()
    expect(await disk.readFile(path)).toEqual(logOf(1, 2))
  })

  it('that lacks its end mark gets it', async () => {
    const { result, lines, disk } = await replay({ logs: { 'log.1': whole.slice(0, -1) } })
    expect([result.appliedCount, result.tornWrites, lines]).toEqual([3, [], []])
    await result.repairAndSync()
    disk.powerCut()
    expect(await disk.readFile(path)).toEqual(whole)
  })

  it.each([0, 9])('without a whole header, of %i bytes, is removed with the log', async (bytes) => {
    const logs = { 'log.1': whole, 'log.4': whole.slice(0, bytes) }
    const { result, disk } = await replay({ logs })
    await result.repairAndSync()
    expect(disk.paths()).toEqual([path])
  })

  it.each([
    ['cut short', logOf(1, 2, 3).slice(0, -20), true],
    ['without its end mark', logOf(1, 2).slice(0, -1), true],
    ['without a whole header', whole.slice(0, 9), true],
    ['whole', logOf(1, 2), false],
    ['without entries', logOf(), false],
  ])('stays as it is when another log follows (%s)', async (_, bytes, isReported) => {
    const logs = { 'log.1': bytes, 'log.3': logOf(3) }
    const { result, lines, disk, tree } = await replay({ logs })
    expect(tree.lastZxid).toBe(3)
    const reported = [
      'info',
      { file: path },
      expect.stringContaining('A log before the newest one') as string,
    ]
    expect(lines.filter(([level]) => level === 'info')).toEqual(isReported ? [reported] : [])
    await result.repairAndSync()
    expect(await disk.readFile(path)).toEqual(bytes)
  })

  it('is written and synced again, although it is whole', async () => {
    const { result, disk } = await replay({ logs: { 'log.1': whole } })
    const calls: string[] = []
    disk.injectFault = (call, file) => void calls.push(`${call} ${file}`)
    await result.repairAndSync()
    expect(calls).toEqual([`open ${path}`, `read ${path}`, `write ${path}`, `sync ${path}`, `sync ${FOLDER}`])
  })
})
