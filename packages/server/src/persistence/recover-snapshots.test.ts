import { adler32, OpCode } from '@zabra/protocol'
import { DiskError, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { recover, type Recovery, type RecoveryOptions } from './index.ts'
import { appendTo, createTxn, diskWithLog, FOLDER, LogFixture, recoverFrom } from './testing/log-fixture.ts'

/** Bytes of a seal: checksum and the string "/". */
const SEAL = 13
const DIGEST = 20
const LAST_ZXID = 8

/** Returns a fixture with a log of 30 transactions and snapshots after 0, 10 and 20 of them. */
async function withSnapshots(): Promise<LogFixture> {
  const fixture = await new LogFixture().open()
  await fixture.snapshot()
  await fixture.appendAll(1, 10)
  await fixture.snapshot()
  await fixture.appendAll(11, 20)
  await fixture.snapshot()
  await fixture.appendAll(21, 30)
  await fixture.log.close()
  return fixture
}

const recoverWith = (fixture: LogFixture, options: Partial<RecoveryOptions>): Promise<Recovery> =>
  recover({ ...fixture.recoveryOptions(), ...options })

/** Changes the bytes of a snapshot and gives it right seals, for its nodes, its digest and its last zxid. */
async function patch(
  { disk }: LogFixture,
  file: string,
  change: (view: DataView, length: number) => void,
): Promise<void> {
  const bytes = await disk.readFile(`${FOLDER}/${file}`)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  change(view, bytes.length)
  const last = bytes.length - SEAL
  const digest = last - LAST_ZXID - SEAL
  const nodes = digest - DIGEST - SEAL
  for (const at of [nodes, digest, last]) view.setUint32(at + 4, adler32(bytes, 0, at))
  disk.putFile(`${FOLDER}/${file}`, bytes)
}

/** Cuts bytes off the end of a snapshot. */
async function cut({ disk }: LogFixture, file: string, bytes: number): Promise<void> {
  disk.putFile(`${FOLDER}/${file}`, (await disk.readFile(`${FOLDER}/${file}`)).slice(0, -bytes))
}

const setLastZxid =
  (zxid: Zxid) =>
  (view: DataView, length: number): void =>
    view.setBigInt64(length - SEAL - LAST_ZXID, BigInt(zxid))
const setDigestZxid =
  (zxid: Zxid) =>
  (view: DataView, length: number): void =>
    view.setBigInt64(length - 2 * SEAL - LAST_ZXID - DIGEST, BigInt(zxid))

describe('recovery up to a transaction', () => {
  it.each([
    [9, 'snapshot.0', 9],
    [10, 'snapshot.a', 0],
    [15, 'snapshot.a', 5],
    [20, 'snapshot.14', 0],
    [29, 'snapshot.14', 9],
  ])('up to %i loads %s and %i transactions after it', async (upTo, snapshot, replayed) => {
    const recovered = await recoverWith(await withSnapshots(), { upTo })
    expect(recovered).toMatchObject({ lastZxid: upTo, snapshot, replayed, skipped: [] })
    expect(recovered.firstAboveLimit?.zxid).toBe(upTo + 1)
    expect(recovered.tree.nodeCount).toBe((await recoverFrom(await diskWithLog(upTo))).nodes)
  })

  it('takes no snapshot with effects of later transactions', async () => {
    const fixture = await withSnapshots()
    await patch(fixture, 'snapshot.a', setLastZxid(12))
    for (const [upTo, snapshot] of [
      [11, 'snapshot.0'],
      [12, 'snapshot.a'],
    ] as const)
      expect(await recoverWith(fixture, { upTo })).toMatchObject({ lastZxid: upTo, snapshot })
  })

  it('takes no snapshot that does not say where it ends, or says a wrong end', async () => {
    const withDigest = await withSnapshots()
    await cut(withDigest, 'snapshot.a', LAST_ZXID + SEAL)
    expect(await recoverWith(withDigest, { upTo: 15 })).toMatchObject({ snapshot: 'snapshot.a' })
    const withoutDigest = await withSnapshots()
    await cut(withoutDigest, 'snapshot.a', LAST_ZXID + SEAL + DIGEST + SEAL)
    expect(await recoverWith(withoutDigest, { upTo: 15 })).toMatchObject({ snapshot: 'snapshot.0' })
    const wrong = await withSnapshots()
    await patch(wrong, 'snapshot.a', setLastZxid(9))
    expect(await recoverWith(wrong, { upTo: 15 })).toMatchObject({ snapshot: 'snapshot.0' })
    const later = await withSnapshots()
    await patch(later, 'snapshot.a', setDigestZxid(16))
    await cut(later, 'snapshot.a', LAST_ZXID + SEAL)
    expect(await recoverWith(later, { upTo: 15 })).toMatchObject({ snapshot: 'snapshot.0' })
  })

  it('changes no file', async () => {
    const { disk } = await withSnapshots()
    const log = `${FOLDER}/log.1`
    const bytes = await disk.readFile(log)
    disk.putFile(log, bytes.slice(0, bytes.findLastIndex((byte) => byte !== 0) - 5))
    for (const name of ['incoming.snapshot.99', 'writing.snapshot.5.tmp'])
      disk.putFile(`${FOLDER}/${name}`, new Uint8Array(5))
    const before = disk.clone()
    const recovered = await recover({ ...new LogFixture().recoveryOptions(), disk, upTo: 29 })
    expect(recovered).toMatchObject({ lastZxid: 29, tornWrites: [{}] })
    expect(disk.paths()).toEqual(before.paths())
    for (const path of before.paths()) expect(await disk.readFile(path)).toEqual(await before.readFile(path))
  })
})

describe('recovery', () => {
  it('says whether there was anything', async () => {
    const empty = await new LogFixture().open()
    expect(await empty.recover()).toMatchObject({ wasEmpty: true, lastZxid: 0, snapshot: undefined })
    expect(await recoverFrom(await diskWithLog(1))).toMatchObject({ wasEmpty: false, lastZxid: 1 })
    const snapshot = await new LogFixture().open()
    await snapshot.snapshot()
    expect(await snapshot.recover()).toMatchObject({ wasEmpty: false, replayed: 0 })
  })

  it('measures the times of the snapshot and of the log', async () => {
    const fixture = await withSnapshots()
    const times = [100, 130, 170]
    expect(await recoverWith(fixture, { now: () => times.shift()! })).toMatchObject({
      snapshotMs: 30,
      logMs: 40,
    })
    expect(await fixture.recover()).toMatchObject({ snapshotMs: 0, logMs: 0 })
  })
})

describe('recovery from snapshots of which some are damaged', () => {
  it('takes the newest one that is sound, and says of each other one why not', async () => {
    const fixture = await withSnapshots()
    await cut(fixture, 'snapshot.14', 3)
    await patch(fixture, 'snapshot.a', (view) => view.setInt32(0, 5))
    const lines: [unknown, string][] = []
    const logger = { ...silentLogger, warn: (context: unknown, text: string) => lines.push([context, text]) }
    const recovered = await recoverWith(fixture, { logger })
    const reasons = ['its writing was not finished', 'Expected the header of a snapshot ("ZKSN", version 2)']
    const skipped = ['snapshot.14', 'snapshot.a'].map((file, i) => ({
      file,
      reason: expect.stringContaining(reasons[i]!) as string,
    }))
    expect(recovered).toMatchObject({ snapshot: 'snapshot.0', lastZxid: 30, skipped })
    expect(lines).toEqual(
      skipped.map((one) => [
        { id: 'recovery.snapshot-skipped', ...one },
        expect.stringMatching(`^Skipping ${one.file}: [iE]`) as string,
      ]),
    )
  })

  it('rejects with the first reason when none is sound', async () => {
    const fixture = await withSnapshots()
    for (const file of ['snapshot.0', 'snapshot.a', 'snapshot.14'])
      await patch(fixture, file, (view) => view.setInt32(0, 5))
    const failure = (await fixture.recover().catch((error: unknown) => error)) as Error
    expect(failure.message).toContain('got 3 that are damaged (snapshot.14: Expected the header')
    expect(failure.cause).toMatchObject({ name: 'DamageError' })
  })

  it('takes an older one when one has numbers out of range, and rejects when the disk fails', async () => {
    for (const [error, result] of [
      [new RangeError('out of range'), { snapshot: 'snapshot.a', skipped: [{ reason: 'out of range' }] }],
      [new DiskError('EIO', 'EIO', 'snapshot.14'), undefined],
    ] as const) {
      const fixture = await withSnapshots()
      const openRead = fixture.disk.openRead.bind(fixture.disk)
      fixture.disk.openRead = (path) =>
        path.endsWith('snapshot.14') ? Promise.reject(error) : openRead(path)
      if (result === undefined) await expect(fixture.recover()).rejects.toBe(error)
      else expect(await fixture.recover()).toMatchObject(result)
    }
  })
})

describe('recovery from a snapshot that lacks an access control list', () => {
  const acl = [{ perms: 3, id: { scheme: 'world', id: 'anyone' } }]
  const header = (zxid: Zxid) => ({ sessionId: 7n, cxid: zxid, zxid, time: 1 })

  /** A snapshot with /n1 but without its list, and the log after it. */
  async function create(...log: readonly LoggedTxn[]): Promise<LogFixture> {
    const fixture = await new LogFixture().open()
    const first = createTxn(1)
    fixture.tree.apply(first.header, { ...first.txn, acl } as LoggedTxn['txn'])
    await fixture.snapshot()
    // The id of its list, behind the header, a session, two counts, and the list of /zookeeper/config for world:anyone.
    await patch(fixture, 'snapshot.1', (view) => view.setBigInt64(16 + 4 + 12 + 4 + 35, 99n))
    const reopened = new LogFixture()
    reopened.disk = fixture.disk
    reopened.tree = fixture.tree
    reopened.appliesDurable = false
    await reopened.open()
    for (const logged of log) appendTo(reopened.log, logged)
    await reopened.log.close()
    return reopened
  }

  it('rejects while the node has none', async () => {
    for (const fixture of [await create(), await create(createTxn(2))])
      await expect(fixture.recover()).rejects.toThrow(
        'Expected the access list of /n1 in the table of snapshot.1 or in the log after it, got neither',
      )
  })

  it('accepts that the log gives the node one, or deletes it', async () => {
    for (const txn of [
      { type: OpCode.setACL, path: '/n1', acl, version: 1 },
      { type: OpCode.delete, path: '/n1' },
    ] as const) {
      const fixture = await create({ header: header(2), txn, digest: undefined } as LoggedTxn)
      expect(await fixture.recover()).toMatchObject({ lastZxid: 2, snapshot: 'snapshot.1' })
    }
  })
})
