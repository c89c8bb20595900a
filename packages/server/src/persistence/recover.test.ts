import { Writer } from '@zabra/protocol'
import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { Tree } from '../core/tree/index.ts'
import type { LoggedTxn } from '../core/types.ts'
import { takeSnapshot } from './index.ts'
import { writeLogHeader } from './log-format.ts'
import {
  createTxn,
  diskWithLog,
  FOLDER,
  hexBytes,
  LogFixture,
  newTree,
  openLog,
  recoverFrom,
  appendTo,
  writeEntry,
} from './testing/log-fixture.ts'
import { randomRuns } from '../testing/random-runs.ts'

const RUNS = randomRuns(1000)

describe('recover', () => {
  it('rejects logs without a snapshot unless snapshot.trust.empty is set', async () => {
    await expect(recoverFrom(await diskWithLog(2), false)).rejects.toThrow('snapshot.trust.empty')
  })

  it.each([
    'log.20000000000000',
    'log.ffffffffffffffff',
    'snapshot.20000000000000',
    'snapshot.7fffffffffffffff.gz',
  ])('rejects a folder with %s, whose zxid no server can have given', async (name) => {
    const disk = await diskWithLog(2)
    disk.putFile(`${FOLDER}/${name}`, new Uint8Array(0))
    await expect(recoverFrom(disk)).rejects.toThrow('Expected a zxid of at most 1fffffffffffff')
    expect(await disk.exists(`${FOLDER}/${name}`)).toBe(true)
  })

  it('removes a new log that was cut anywhere in its header', async () => {
    const header = hexBytes('5a4b4c47 00000002 0000000000000000')
    for (let cut = 0; cut < header.length; cut++) {
      for (const padded of [false, true]) {
        const disk = await diskWithLog(2)
        const path = `${FOLDER}/log.3`
        disk.putFile(path, padded ? header.slice().fill(0, Math.min(cut, 7)) : header.slice(0, cut))
        expect((await recoverFrom(disk)).lastZxid, `${cut} bytes`).toBe(2)
        expect(await disk.exists(path)).toBe(false)
      }
    }
  })

  it('recovers a prefix of a log that was cut anywhere in its last entries', async () => {
    const disk = await diskWithLog(5)
    const file = await disk.readFile(`${FOLDER}/log.1`)
    const used = file.findLastIndex((byte) => byte !== 0) + 1
    for (let cut = used - 180; cut <= used; cut++) {
      for (const padded of [false, true]) {
        const damaged = disk.clone()
        const bytes = padded ? file.slice().fill(0, cut) : file.slice(0, cut)
        damaged.putFile(`${FOLDER}/log.1`, bytes)
        const { lastZxid, tree } = await recoverFrom(damaged)
        expect(lastZxid).toBe(cut >= used - 1 ? 5 : tree.nodeCount - 4)
        expect(await recoverFrom(damaged)).toMatchObject({ lastZxid, tornWrites: [] })
      }
    }
  })

  it('rejects or survives every flipped byte of the last entry and 1,000 others, and never loses a transaction', async () => {
    const disk = await diskWithLog(20)
    const file = await disk.readFile(`${FOLDER}/log.1`)
    const used = file.findLastIndex((byte) => byte !== 0) + 1
    const check = async (offset: number, mask: number): Promise<void> => {
      const damaged = disk.clone()
      const bytes = file.slice()
      bytes[offset]! ^= mask
      damaged.putFile(`${FOLDER}/log.1`, bytes)
      const result = await recoverFrom(damaged).catch((error: Error) => error)
      if (result instanceof Error) expect(result.name).toBe('DamageError')
      else expect({ offset, mask, last: result.lastZxid }).toEqual({ offset, mask, last: 20 })
    }
    for (let offset = used - 90; offset < used + 4; offset++)
      for (const mask of [1, 0x42, 0x80, 0xff]) await check(offset, mask)
    const places = fc.sample(fc.tuple(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 })), {
      numRuns: 1000,
      seed: 11,
    })
    for (const [offset, mask] of places) await check(offset, mask)
  }, 20_000)

  it.each(['none', 'snappy'] as const)(
    'loads a snapshot (%s) and the log after it, and an older snapshot when that one is damaged',
    async (kind) => {
      const disk = await diskWithLog(0)
      const tree = newTree()
      const log = openLog(disk)
      await takeSnapshot(tree, [], { disk, folder: FOLDER, compression: kind, compressor: nodeCompression })
      for (let z = 1; z <= 30; z++) {
        tree.apply(createTxn(z, 5).header, createTxn(z, 5).txn)
        appendTo(log, { ...createTxn(z, 5), digest: tree.digest })
        if (z === 20)
          await takeSnapshot(tree, [[9n, 4000]], {
            disk,
            folder: FOLDER,
            compression: kind,
            compressor: nodeCompression,
          })
      }
      await log.close()
      const loaded = await recoverFrom(disk, false)
      expect(loaded).toMatchObject({ lastZxid: 30, replayed: 10, skipped: [] })
      expect(loaded.sessions).toEqual(new SessionMap([[9n, 4000]]))
      expect(loaded.tree.digest).toEqual(tree.digest)
      const path = `${FOLDER}/${loaded.snapshot}`
      const bytes = await disk.readFile(path)
      bytes[200]! ^= 1
      disk.putFile(path, bytes)
      expect(await recoverFrom(disk, false)).toMatchObject({ lastZxid: 30, replayed: 30, skipped: [{}] })
    },
  )

  it('removes snapshots whose writing a crash cut short', async () => {
    const fixture = await new LogFixture().open()
    await fixture.snapshot()
    await fixture.log.close()
    for (const name of ['writing.snapshot.5.tmp', 'restoring', 'restoring.gz', 'restoring.snappy'])
      fixture.disk.putFile(`${FOLDER}/${name}`, new Uint8Array(1000))
    await fixture.recover()
    expect(fixture.fileNames()).toEqual(['snapshot.0'])
  })

  it('rejects a log folder with snapshots and a snapshot folder with logs', async () => {
    const fixture = await new LogFixture().open()
    await fixture.snapshot()
    await fixture.appendAll(1, 10)
    await fixture.log.close()
    await fixture.disk.makeFolder('/logs/version-2')
    await expect(fixture.recover('/logs')).rejects.toThrow(
      /Expected logs in \/logs\/version-2 only.*got log\.1 in \/data\/version-2\. Move all log/,
    )
    await fixture.disk.rename(`${FOLDER}/log.1`, '/logs/version-2/log.1')
    expect((await fixture.recover('/logs')).lastZxid).toBe(10)
    fixture.disk.putFile('/logs/version-2/snapshot.5', new Uint8Array(10))
    await expect(fixture.recover('/logs')).rejects.toThrow(/Expected snapshots in \/data\/version-2 only/)
  })

  it('recovers without digests from a snapshot that was taken between appends', async () => {
    const fixture = await new LogFixture().open()
    fixture.tree = new Tree({ digest: false, extendedTypes: true })
    await fixture.appendAll(1, 20)
    await fixture.snapshot()
    await fixture.appendAll(21, 40)
    await fixture.log.close()
    for (const digest of [false, true]) expect((await fixture.recover('/data', digest)).lastZxid).toBe(40)
  })
})

describe('recovery from a log with digests', () => {
  async function logWithWrongDigest(path: string): Promise<LogFixture> {
    const fixture = await new LogFixture().open()
    await fixture.snapshot()
    const { header, txn } = createTxn(1)
    appendTo(fixture.log, { header, txn: { ...txn, path } as LoggedTxn['txn'], digest: { hi: 1, lo: 2 } })
    await fixture.log.close()
    return fixture
  }

  it("rejects a digest that differs from the tree's", async () => {
    await expect((await logWithWrongDigest('/a')).recover()).rejects.toThrow(
      /after transaction 0x1 to have the digest that its log gives/,
    )
  })

  it('accepts another digest with a warning when paths are not ASCII, since it may be of another encoding', async () => {
    const fixture = await logWithWrongDigest('/ä')
    const { tree } = await fixture.recover()
    expect(tree.has('/ä')).toBe(true)
    expect(fixture.warnings).toEqual([expect.stringContaining('Digests are not checked')])
  })
})

describe('recovery of bytes that were not synced', () => {
  const PATH = '/data/version-2/log.1'

  function entry(zxid: number): Uint8Array {
    const writer = new Writer()
    if (zxid === 1) writeLogHeader(writer)
    writeEntry(writer, createTxn(zxid, 5))
    return writer.take()
  }

  it('makes entries durable that the process before had written and not synced', async () => {
    const disk = await diskWithFolder('/data/version-2')
    const writer = await disk.openWrite(PATH, { create: true, durable: false })
    await writer.write(entry(1), 0)
    await writer.sync()
    await disk.syncFolder('/data/version-2')
    // The process ends between the write and its sync, or because the sync fails.
    await writer.write(entry(2), entry(1).length)
    expect((await recoverFrom(disk)).lastZxid).toBe(2)
    disk.powerCut()
    expect((await recoverFrom(disk)).lastZxid).toBe(2)
  })

  it('makes the name of the newest log durable', async () => {
    const disk = await diskWithFolder('/data/version-2')
    const writer = await disk.openWrite(PATH, { create: true, durable: true })
    await writer.write(entry(1), 0)
    expect((await recoverFrom(disk)).lastZxid).toBe(1)
    disk.powerCut()
    expect((await recoverFrom(disk)).lastZxid).toBe(1)
  })
})

describe('recovery after a power cut', () => {
  type Step = { readonly do: 'append' | 'flush' | 'snapshot' | 'turn' }
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 6, arbitrary: fc.constant({ do: 'append' as const }) },
    { weight: 2, arbitrary: fc.constant({ do: 'flush' as const }) },
    { weight: 1, arbitrary: fc.constant({ do: 'snapshot' as const }) },
    { weight: 2, arbitrary: fc.constant({ do: 'turn' as const }) },
  )

  it(`loses nothing that was reported durable, in ${RUNS} random histories of three runs each`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { maxLength: 25 }), { minLength: 3, maxLength: 3 }),
        fc.integer({ min: 300, max: 3000 }),
        async (runs, fileSizeLimitBytes) => {
          let fixture = await new LogFixture().open({ fileSizeLimitBytes })
          await fixture.snapshot()
          for (const run of runs) {
            for (const one of run) {
              if (one.do === 'append') fixture.append(fixture.log.lastZxid + 1)
              else if (one.do === 'flush') await fixture.log.flush()
              else if (one.do === 'snapshot') await fixture.snapshot()
              else await fixture.clock.untilIdle()
            }
            // No orderly end: what is not durable is lost, though a snapshot may be ahead of the log.
            const { durable } = fixture
            fixture.disk.powerCut()
            const recovered = await fixture.recover()
            expect(recovered.lastZxid).toBeGreaterThanOrEqual(durable)
            const expected = new Tree({ digest: true, extendedTypes: true })
            for (let zxid = 1; zxid <= recovered.lastZxid; zxid++)
              expected.apply(createTxn(zxid).header, createTxn(zxid).txn)
            expect(recovered.tree.digest).toEqual(expected.digest)
            const next = new LogFixture()
            next.disk = fixture.disk
            next.tree = recovered.tree
            next.durable = recovered.lastZxid
            fixture = await next.open({ fileSizeLimitBytes })
          }
        },
      ),
      { numRuns: RUNS },
    )
  })
})
