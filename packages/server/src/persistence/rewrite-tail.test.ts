import { OPEN_ACL_UNSAFE, OpCode, Writer } from '@zabra/protocol'
import { MemoryDisk, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import { writeEntry, lockFolder, recover, type Recovery } from './index.ts'
import { writeLogHeader } from './log-format.ts'

const PATH = '/data/version-2/log.1'

function entry(zxid: number): Uint8Array {
  const writer = new Writer()
  if (zxid === 1) writeLogHeader(writer)
  writeEntry(writer, {
    header: { sessionId: 7n, cxid: zxid, zxid, time: 1000 },
    txn: {
      type: OpCode.create,
      path: `/n${zxid}`,
      data: new Uint8Array(5),
      acl: OPEN_ACL_UNSAFE,
      ephemeral: false,
      parentCVersion: zxid,
    },
    digest: undefined,
  })
  return writer.take()
}

const refuse = (): never => {
  throw new Error('not used here')
}

const start = (disk: MemoryDisk): Promise<Recovery> =>
  recover({
    disk,
    logger: silentLogger,
    compression: { gzip: refuse, gunzip: refuse },
    dataDir: '/data',
    dataLogDir: '/data',
    autoCreate: true,
    trustEmptySnapshot: true,
    createTree: () => new Tree({ digest: true, extendedTypes: true }),
  })

describe('what a start reads', () => {
  it('stays through a power cut later, also when the process before had not synced it', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/data/version-2')
    const writer = await disk.openWrite(PATH, { create: true, durable: false })
    await writer.write(entry(1), 0)
    await writer.sync()
    await disk.syncFolder('/data/version-2')
    // Written, and the process ends before its sync, or because its sync fails.
    await writer.write(entry(2), entry(1).length)
    expect((await start(disk)).lastZxid).toBe(2)
    disk.powerCut()
    expect((await start(disk)).lastZxid).toBe(2)
  })

  it('stays when it lies in a file whose name was not durable', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/data/version-2')
    const writer = await disk.openWrite(PATH, { create: true, durable: true })
    await writer.write(entry(1), 0)
    expect((await start(disk)).lastZxid).toBe(1)
    disk.powerCut()
    expect((await start(disk)).lastZxid).toBe(1)
  })
})

describe('the lock of a folder', () => {
  it('is taken over from a process that is gone although another process wrote it within this one', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/data')
    const owner = (pid: number) => ({
      pid,
      processIdentity: (other: number) => (other === pid ? `${pid}` : undefined),
    })
    await lockFolder(disk, '/data', owner(1), 'one')
    const unlock = await lockFolder(disk, '/data', owner(2), 'two')
    await unlock()
    expect(await disk.exists('/data/zabra.lock')).toBe(false)
  })
})
