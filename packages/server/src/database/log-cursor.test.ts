import { OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { LeaderHistory, collect, FOLDER, DatabaseFixture, same, zxidOf } from './testing/database-fixture.ts'

const SMALL = { txnLogSizeLimitBytes: 600 }

async function member(
  leader: LeaderHistory,
  settings: Parameters<typeof DatabaseFixture.open>[1] = SMALL,
): Promise<DatabaseFixture> {
  const rig = await DatabaseFixture.open(new MemoryDisk(), settings)
  await rig.vault.acceptEpoch(9)
  await rig.follow(leader.txns)
  return rig
}

describe('the history in the log', () => {
  it('is given from any transaction to any other, over files and epochs', async () => {
    const leader = new LeaderHistory().creates(1, 1, 9).creates(2, 1, 7).creates(4, 1, 3)
    const rig = await member(leader)
    expect(rig.names().filter((name) => name.startsWith('log')).length).toBeGreaterThan(2)
    const points = [
      0,
      zxidOf(1, 1),
      zxidOf(1, 9),
      zxidOf(2, 0),
      zxidOf(2, 3),
      zxidOf(2, 7),
      zxidOf(3, 0),
      zxidOf(4, 0),
      zxidOf(4, 3),
    ]
    for (const after of points) {
      for (const upTo of points.filter((point) => point >= after)) {
        const found = await collect(rig.vault.readHistory(after, upTo))
        const expected = leader.txns.filter(({ zxid }) => zxid > after && zxid <= upTo)
        expect(found.map(({ zxid }) => zxid)).toEqual(expected.map(({ zxid }) => zxid))
        expect(found.map(({ payload }) => payload)).toEqual(expected.map(({ payload }) => payload))
      }
    }
  })

  it('is known by where its epochs end and how long it is', async () => {
    const leader = new LeaderHistory().creates(1, 1, 9).creates(2, 1, 7)
    const rig = await member(leader)
    const { after, upTo, epochEnds } = rig.vault.logRange
    expect({ after, upTo, epochEnds }).toEqual({
      after: 0,
      upTo: zxidOf(2, 7),
      epochEnds: [zxidOf(1, 9), zxidOf(2, 7)],
    })
    expect(rig.vault.logRange.bytesAfter(zxidOf(1, 3))).toBeGreaterThan(13 * 40)
    expect(rig.vault.snapshotBytes).toBe(
      rig.disk.paths().length > 0 ? await rig.disk.size(`${FOLDER}/snapshot.0`) : -1,
    )
    await rig.vault.truncateTo(zxidOf(2, 2))
    expect(rig.vault.logRange.epochEnds).toEqual([zxidOf(1, 9), zxidOf(2, 2)])
    await rig.vault.close()
    await rig.open()
    expect(rig.vault.logRange).toMatchObject({
      after: 0,
      upTo: zxidOf(2, 2),
      epochEnds: [zxidOf(1, 9), zxidOf(2, 2)],
    })
  })

  it('waits for what is not durable, and is read while the log grows', async () => {
    const leader = new LeaderHistory().creates(1, 1, 300)
    const rig = await DatabaseFixture.open(new MemoryDisk(), SMALL)
    await rig.vault.acceptEpoch(1)
    const writer = rig.writer()
    for (const { zxid, payload } of leader.txns.slice(0, 100)) writer.appendPayload(zxid, payload)
    const reading = rig.vault.readHistory(zxidOf(1, 50), zxidOf(1, 100))
    const found: number[] = []
    let next = 100
    for await (const { zxid } of reading) {
      found.push(zxid)
      const txn = leader.txns[next++]!
      writer.appendPayload(txn.zxid, txn.payload)
    }
    expect(found).toEqual(Array.from({ length: 50 }, (_, i) => zxidOf(1, 51 + i)))
  })

  it('before the snapshot that was loaded is not vouched for (H1)', async () => {
    const leader = new LeaderHistory().creates(1, 1, 9)
    const rig = await member(leader)
    await rig.vault.takeSnapshot([])
    await rig.follow([leader.create(zxidOf(1, 10))])
    await rig.vault.close()
    await rig.open()
    expect(rig.vault.logRange.after).toBe(zxidOf(1, 9))
    await expect(collect(rig.vault.readHistory(zxidOf(1, 8), zxidOf(1, 10)))).rejects.toThrow(
      'Send the learner a snapshot.',
    )
    expect(await collect(rig.vault.readHistory(zxidOf(1, 9), zxidOf(1, 10)))).toHaveLength(1)
  })

  it('after a snapshot of the leader begins there: what was taken back is served to nobody (H1)', async () => {
    const leader = new LeaderHistory().creates(1, 1, 3)
    const rig = await member(new LeaderHistory().creates(1, 1, 5))
    leader.creates(2, 1, 4)
    await rig.receive(leader)
    await rig.vault.installSnapshot()
    await rig.follow([leader.create(zxidOf(2, 5))])
    expect(rig.vault.logRange.after).toBe(zxidOf(2, 4))
    await expect(collect(rig.vault.readHistory(zxidOf(1, 3), zxidOf(2, 5)))).rejects.toThrow(
      'Send the learner a snapshot.',
    )
    expect(rig.names().filter((name) => name.startsWith('log'))).toEqual(['log.200000005'])
  })

  it('stops at damage and at holes, with an error', async () => {
    const leader = new LeaderHistory().creates(1, 1, 30)
    const rig = await member(leader)
    const logs = rig.names().filter((name) => name.startsWith('log'))
    const path = `${FOLDER}/${logs[2]}`
    const whole = await rig.disk.readFile(path)
    const broken = whole.slice()
    broken[60]! ^= 1
    rig.disk.putFile(path, broken)
    const found: number[] = []
    const reading = async (): Promise<void> => {
      for await (const { zxid } of rig.vault.readHistory(0, zxidOf(1, 30))) found.push(zxid)
    }
    await expect(reading()).rejects.toMatchObject({ name: 'DamageError' })
    expect(found.length).toBeGreaterThan(2)
    await rig.disk.remove(path)
    await expect(reading()).rejects.toThrow(/Expected transaction .* or the first of a later epoch/)
    rig.disk.putFile(path, whole)
    await reading()
  })

  it('closes no file of which something is still being read ahead', async () => {
    const leader = new LeaderHistory()
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(1)
    for (let counter = 1; counter <= 8; counter++)
      leader.write(zxidOf(1, counter), {
        type: OpCode.create,
        path: `/n${counter}`,
        data: new Uint8Array(400_000),
        acl: OPEN_ACL_UNSAFE,
        ephemeral: false,
        parentCVersion: counter,
      })
    await rig.follow(leader.txns)
    const { disk } = rig
    const openRead = disk.openRead.bind(disk)
    const readingAtClose: number[] = []
    disk.openRead = async (path) => {
      const reader = await openRead(path)
      let reading = 0
      return {
        ...reader,
        read: async (into, position) => {
          reading++
          for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
          reading--
          return reader.read(into, position)
        },
        close: async () => void readingAtClose.push(reading),
      }
    }
    expect(await collect(rig.vault.readHistory(0, zxidOf(1, 1)))).toHaveLength(1)
    expect(readingAtClose).toEqual([0])
  })

  it('keeps the files that somebody is reading from being purged', async () => {
    const leader = new LeaderHistory()
    const rig = await member(leader)
    for (let counter = 1; counter <= 25; counter++) {
      await rig.follow([leader.create(zxidOf(1, counter))])
      if (counter % 5 === 0) await rig.vault.takeSnapshot([])
    }
    const reading = rig.vault.readHistory(zxidOf(1, 3), zxidOf(1, 25))
    expect((await reading.next()).value).toMatchObject({ zxid: zxidOf(1, 4) })
    await rig.vault.purge(3)
    expect(await collect(reading)).toHaveLength(21)
    expect(await rig.vault.purge(3)).toContain('log.100000003')
    expect(rig.names()).not.toContain('snapshot.100000005')
  })

  it('is purged only when compressed snapshots can be unpacked to their ends: a beginning says nothing', async () => {
    for (const snapshotCompression of ['gz', 'snappy'] as const) {
      const leader = new LeaderHistory()
      const rig = await member(leader, { ...SMALL, snapshotCompression })
      for (let counter = 1; counter <= 3; counter++) {
        await rig.follow([leader.create(zxidOf(1, counter))])
        await rig.vault.takeSnapshot([])
      }
      const newest = `${FOLDER}/snapshot.100000003.${snapshotCompression}`
      const whole = await rig.disk.readFile(newest)
      rig.disk.putFile(newest, whole.subarray(0, whole.length >> 1))
      expect(await rig.vault.purge(3)).toEqual([])
      rig.disk.putFile(newest, whole)
      expect(await rig.vault.purge(3)).toContain(`snapshot.0.${snapshotCompression}`)
    }
  })

  it('of a tree that is replaced is not purged: a crash brings the old files back', async () => {
    const leader = new LeaderHistory()
    const rig = await member(leader)
    for (let counter = 1; counter <= 25; counter++) {
      await rig.follow([leader.create(zxidOf(1, counter))])
      if (counter % 5 === 0) await rig.vault.takeSnapshot([])
    }
    await rig.receive(leader)
    expect(await rig.vault.purge(3)).toEqual([])
  })
})

describe('a start', () => {
  it('refuses a hole between epochs, which leftovers of an older history make', async () => {
    const leader = new LeaderHistory().creates(1, 1, 3)
    const rig = await member(new LeaderHistory().creates(1, 1, 5))
    await rig.vault.close()
    const other = await DatabaseFixture.open()
    leader.creates(2, 1, 4)
    await other.receive(leader)
    await other.vault.acceptEpoch(2)
    await other.vault.installSnapshot()
    await other.follow([leader.create(zxidOf(2, 5))])
    await other.vault.close()
    // As Apache ZooKeeper leaves it after a SNAP, with the snapshot lost.
    rig.disk.putFile(`${FOLDER}/log.200000005`, await other.disk.readFile(`${FOLDER}/log.200000005`))
    await expect(rig.open()).rejects.toThrow('transactions are missing')
    rig.disk.putFile(
      `${FOLDER}/snapshot.200000004`,
      await other.disk.readFile(`${FOLDER}/snapshot.200000004`),
    )
    await rig.open()
    expect(same(rig.vault.tree, leader.tree)).toBe(true)
  })

  it('as a single server leaves epochs alone', async () => {
    const rig = new DatabaseFixture()
    await rig.open(false)
    expect(rig.names()).toEqual(['snapshot.0'])
    expect(() => rig.vault.epochs).toThrow('Only a member of an ensemble has epochs.')
    await rig.vault.close()
    await rig.open()
    expect(rig.names()).toEqual(['acceptedEpoch', 'currentEpoch', 'snapshot.0'])
  })
})
