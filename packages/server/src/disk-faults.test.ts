import { OpCode } from '@zabra/protocol'
import { MemoryDisk, type DiskFault, type DiskOperation } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { TestServer } from './testing/test-server.ts'

const SETTINGS = { snapCount: 4, txnLogSizeLimitBytes: 400, maxSessionTimeoutMs: 60_000 } as const
const WRITES = 8
/** Errors after which writes are refused until there is space; what cannot be recorded, such as a session, is refused too. */
const FULL = ['ENOSPC', 'EDQUOT', 'EMFILE']

interface FaultCase {
  readonly fault: DiskFault
  /** Whether all later calls fail too. */
  readonly lasts: boolean
  readonly calls: readonly DiskOperation[]
}

const changes: readonly DiskOperation[] = ['write', 'sync', 'open', 'truncate', 'rename', 'remove']
const cases: Record<string, FaultCase> = {
  'an EIO once': { fault: { code: 'EIO' }, lasts: false, calls: [...changes, 'read'] },
  'an EIO from then on': { fault: { code: 'EIO' }, lasts: true, calls: [...changes, 'read'] },
  'an EIO after 7 written bytes': { fault: { code: 'EIO', writtenBytes: 7 }, lasts: false, calls: ['write'] },
  'an EIO after all bytes': { fault: { code: 'EIO', writtenBytes: 1e9 }, lasts: false, calls: ['write'] },
  'an EIO of a sync': { fault: { code: 'EIO' }, lasts: false, calls: ['sync'] },
  'an EIO of a rename': { fault: { code: 'EIO' }, lasts: false, calls: ['rename'] },
  'an ENOSPC once': { fault: { code: 'ENOSPC', writtenBytes: 5 }, lasts: false, calls: ['write', 'open'] },
  'an ENOSPC from then on': { fault: { code: 'ENOSPC' }, lasts: true, calls: ['write', 'open'] },
  'an EDQUOT from then on': { fault: { code: 'EDQUOT', writtenBytes: 3 }, lasts: true, calls: ['write'] },
  'an EMFILE from then on': { fault: { code: 'EMFILE' }, lasts: true, calls: ['open'] },
  'an EROFS from then on': { fault: { code: 'EROFS' }, lasts: true, calls: changes },
}

/** The history of one server on a disk with a fault. */
interface Run {
  readonly disk: MemoryDisk
  /** Paths whose creation was acknowledged. */
  readonly acknowledged: readonly string[]
  /** The number of calls that could have failed. */
  readonly calls: number
  readonly stop: () => Promise<void>
}

/** Starts a server on an empty disk of which the call number `at` fails, and writes until it stops. */
async function run({ fault, lasts, calls: failing }: FaultCase, at: number): Promise<Run> {
  const disk = new MemoryDisk()
  let calls = 0
  disk.injectFault = (call) => {
    if (!failing.includes(call)) return undefined
    const number = calls++
    return number === at || (lasts && number > at) ? fault : undefined
  }
  const acknowledged: string[] = []
  const nothing = async (): Promise<void> => {}
  const started = await TestServer.start(SETTINGS, disk).catch((error: unknown) => error)
  if (!(started instanceof TestServer)) {
    expect(String(started)).toContain(fault.code)
    return { disk, acknowledged, calls, stop: nothing }
  }
  let failure: unknown
  void started.server.failed.then((reason) => (failure = reason))
  const client = await started.client({ timeout: 60_000 })
  if (client.takeConnectResponse() !== undefined)
    for (let xid = 1; xid <= WRITES && !client.closed; xid++) {
      client.create(xid, `/n${xid}`, 0, 'x'.repeat(60))
      const received = await client.received()
      if (received.includes(`${xid}:0`)) acknowledged.push(`/n${xid}`)
      // A write is answered, or the server has stopped and says why.
      else if (!client.closed) expect(received).toHaveLength(1)
      await started.advance(200)
    }
  if (client.closed && !FULL.includes(fault.code)) {
    expect(failure).toBeInstanceOf(Error)
    expect(started.logLines.filter(({ level }) => level === 'error')).not.toEqual([])
  }
  const stop = async (): Promise<void> => {
    await started.stop().catch((error: unknown) => expect(String(error)).toContain(fault.code))
  }
  return { disk, acknowledged, calls, stop }
}

it.each(Object.keys(cases))(
  'A server whose disk has %s, at any call, keeps all writes that it acknowledged and starts again',
  { timeout: 120_000 },
  async (name) => {
    for (let at = 0; ; at++) {
      for (const withPowerCut of [false, true]) {
        const { disk, acknowledged, calls, stop } = await run(cases[name]!, at)
        if (calls <= at) {
          expect(acknowledged).toHaveLength(WRITES)
          expect(at).toBeGreaterThan(2)
          return
        }
        disk.injectFault = undefined
        if (withPowerCut) disk.powerCut()
        else await stop()
        const what = `call ${at} ${withPowerCut ? 'with' : 'without'} a power cut`
        const again = await TestServer.start(SETTINGS, disk).catch((error: unknown) => {
          throw new Error(what, { cause: error })
        })
        const client = await again.connect()
        for (const [index, path] of acknowledged.entries()) client.read(index + 1, OpCode.exists, path)
        client.create(99, '/again')
        expect(await client.received(), what).toEqual([
          ...acknowledged.map((_, index) => `${index + 1}:0`),
          '99:0',
        ])
        await again.stop()
      }
    }
  },
)
