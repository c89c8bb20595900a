import { OpCode, Writer } from '@zabra/protocol'
import { DiskError, MemoryDisk } from '@zabra/runtime'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Ensemble } from '../../ensemble/testing/ensemble.ts'
import type { ServerSettings } from '../../settings/index.ts'
import { SNAPSHOT_MAGIC } from '../../persistence/snapshot-codec.ts'
import { TestServer, type RawClient } from '../../testing/test-server.ts'
import type { AdminTarget } from '../admin-target.ts'
import { Restores } from './restore-command.ts'

const SETTINGS: Partial<ServerSettings> = {
  adminRestoreEnabled: true,
  adminRoleAdmin: ['ip:127.0.0.1'],
  adminRateLimitMs: 0,
}
const FAILED = '{\n  "command" : "restore",\n  "error" : null\n}'

let server: TestServer
let client: RawClient

beforeEach(async () => {
  server = await TestServer.start(SETTINGS)
  client = await server.connect()
})

afterEach(() => server.stop())

/** A snapshot up to the data of a node, which have a gigabyte: header, sessions, lists, path, length. */
const beginOfNode = (() => {
  const writer = new Writer(64)
  for (const int of [SNAPSHOT_MAGIC, 2, 0, 0, 0, 0]) writer.int(int)
  writer.string('')
  writer.int(0x4000_0000)
  return writer.take()
})()

const restore = (body: Uint8Array, to = server) =>
  to.http.request('/commands/restore', { method: 'POST', body })

/** Returns a snapshot of the server, as the command `snapshot` sends it. */
async function snapshot(): Promise<Uint8Array> {
  const { status, bytes } = await server.http.request('/commands/snapshot')
  expect(status).toBe(200)
  return bytes
}

const has = async (reader: RawClient, path: string): Promise<boolean> => {
  reader.read(9, OpCode.exists, path)
  return (await reader.received()).at(-1) === '9:0'
}

describe('the command restore', () => {
  it('replaces data, ends sessions, and goes on in an epoch that no client has seen', async () => {
    client.create(1, '/kept', 0, 'data')
    client.create(2, '/lock', 1)
    await server.untilIdle()
    const taken = await snapshot()
    client.create(3, '/later')
    await server.untilIdle()
    const before = server.server.stats().lastZxid
    expect(await restore(taken)).toMatchObject({
      status: 200,
      headers: { 'content-type': 'application/json' },
      text: `{\n  "last_zxid" : ${2 ** 32 + 1},\n  "command" : "restore",\n  "error" : null\n}`,
    })
    await server.untilIdle()
    expect(client.closed).toBe(true)
    const resumed = await server.client({ resume: client.session!, seen: BigInt(before) })
    expect(resumed.takeConnectResponse()?.timeOut).toBe(0)
    const reader = await server.connect({ seen: BigInt(before) })
    expect([await has(reader, '/kept'), await has(reader, '/lock'), await has(reader, '/later')]).toEqual([
      true,
      false,
      false,
    ])
    reader.create(10, '/after')
    expect((await reader.received()).at(-1)).toBe('10:0')
    // The files are those of the restored data, and the old ones are kept aside.
    expect(server.disk.paths().some((path) => path.includes('set-aside'))).toBe(true)
    expect(server.disk.paths().some((path) => path.includes('restoring'))).toBe(false)
    await server.stop()
    await server.restart()
    const again = await server.connect()
    expect([await has(again, '/kept'), await has(again, '/after'), await has(again, '/later')]).toEqual([
      true,
      true,
      false,
    ])
  })

  it('changes nothing for a body that is no complete snapshot', async () => {
    client.create(1, '/a')
    await server.untilIdle()
    const taken = await snapshot()
    const flipped = taken.slice()
    flipped[taken.length >> 1]! ^= 1
    for (const body of [
      new Uint8Array(0),
      taken.subarray(0, -9),
      flipped,
      new TextEncoder().encode('hello'),
    ]) {
      expect(await restore(body)).toMatchObject({ status: 500, text: FAILED })
      expect(server.logLines.at(-1)).toMatchObject({ level: 'error' })
    }
    // Without the last transaction: a snapshot of a server before 3.9.
    expect((await restore(taken.subarray(0, -21))).status).toBe(500)
    expect(server.logLines.at(-1)?.facts).toMatchObject({ reason: expect.stringContaining('before 3.9') })
    expect(client.closed).toBe(false)
    expect(await has(client, '/a')).toBe(true)
    const { text } = await server.http.request('/metrics')
    expect(text).toContain('restore_error_count 5.0')
    expect(server.disk.paths().some((path) => path.includes('restoring'))).toBe(false)
  })

  it('receives no more bytes than admin.restore.maxBytes allows, and says so', async () => {
    const taken = await snapshot()
    const [below, exact] = await Promise.all(
      [taken.length - 1, taken.length].map((adminRestoreMaxBytes) =>
        TestServer.start({ ...SETTINGS, adminRestoreMaxBytes }),
      ),
    )
    const refused = await restore(taken, below)
    expect([refused.status, refused.text]).toEqual([
      413,
      expect.stringContaining(`at most ${taken.length - 1} bytes (admin.restore.maxBytes)`),
    ])
    expect(below!.disk.paths().some((path) => path.includes('restoring'))).toBe(false)
    const { status } = await below!.http.request('/api/v1/restore', { method: 'POST', body: taken })
    expect(status).toBe(413)
    expect((await restore(taken, exact)).status).toBe(200)
    await Promise.all([below!.stop(), exact!.stop()])
  })

  it('ends a snapshot that grows without end when it is decompressed before the memory is full', async () => {
    client.create(1, '/kept', 0, 'data')
    await server.untilIdle()
    const part = 1 << 20
    let decompressed = 0
    const endless = {
      write: async (): Promise<Uint8Array> => {
        const bytes = new Uint8Array(part)
        if (decompressed === 0) bytes.set(beginOfNode)
        decompressed += part
        return bytes
      },
      end: async () => new Uint8Array(0),
    }
    const platform = server.platform()
    const restores = new Restores({
      ...platform,
      compression: { ...platform.compression, gunzip: () => endless },
      system: {
        ...platform.system,
        heap: () => ({ used: 0, external: decompressed }),
        memoryLimits: () => ({ heap: Infinity, process: 128 * part }),
      },
      // Each look at the time comes later than the pauses between two looks at the memory.
      clock: {
        ...platform.clock,
        monotonic: () => (now += 1000),
        immediate: (action) => setImmediate(action),
      },
    })
    let now = 0
    const body = new Uint8Array(4 * part)
    body.set([0x1f, 0x8b])
    const target = server.server as unknown as AdminTarget
    const { done } = await restores.begin(target, { headers: {}, body: [body] as never })
    await expect(done).rejects.toMatchObject({
      status: 507,
      message: expect.stringContaining('fits into memory beside the data'),
    })
    // A process has up to 80 MiB beside its heap and buffers.
    expect(decompressed).toBeGreaterThan(20 * part)
    expect(decompressed + 80 * part).toBeLessThanOrEqual(128 * part)
    expect(restores.state).toMatchObject({ state: 'failed', again: false })
    expect(server.disk.paths().some((path) => path.includes('restoring'))).toBe(false)
    expect(await has(client, '/kept')).toBe(true)
  })

  it('receives nothing where the disk would have too little space left', async () => {
    const taken = await snapshot()
    server.disk.freeBytes = 2 ** 30 - 1
    const refused = await restore(taken)
    expect([refused.status, refused.text]).toEqual([507, expect.stringContaining('Make space on this disk')])
    expect(server.disk.paths().some((path) => path.includes('restoring'))).toBe(false)
    // Received, but too much for a second file beside it.
    server.disk.freeBytes = 2 ** 30
    expect((await restore(taken)).status).toBe(507)
    expect(await has(client, '/')).toBe(true)
    server.disk.freeBytes = 2 ** 30 + 10_000
    expect((await restore(taken)).status).toBe(200)
  })

  it('says why the disk does not open the file for a snapshot', async () => {
    const target = server.server as unknown as AdminTarget
    const restores = new Restores(server.platform())
    server.disk.injectFault = (call, path) =>
      call === 'open' && path.includes('restoring') ? { code: 'EDQUOT' } : undefined
    const begun = restores.begin(target, { headers: {}, body: [new Uint8Array(8)] as never })
    await expect(begun).rejects.toMatchObject({ code: 'EDQUOT' })
    expect(restores.state).toMatchObject({ state: 'failed', problem: expect.stringContaining('EDQUOT') })
  })

  it('says why the disk takes no snapshot, also where the file then cannot be closed', async () => {
    const target = server.server as unknown as AdminTarget
    const platform = server.platform()
    const { disk } = platform
    const openWrite = disk.openWrite.bind(disk)
    const opened = vi.spyOn(disk, 'openWrite').mockImplementation(async (path, options) => {
      const close = () => Promise.reject(new DiskError('EIO', 'EIO', path))
      return { ...(await openWrite(path, options)), close }
    })
    server.disk.injectFault = (call, path) =>
      call === 'write' && path.includes('restoring') ? { code: 'EDQUOT' } : undefined
    const begun = new Restores(platform).begin(target, { headers: {}, body: [new Uint8Array(8)] as never })
    await expect(begun).rejects.toMatchObject({ code: 'EDQUOT' })
    const path = opened.mock.calls.at(-1)![0]
    opened.mockRestore()
    expect(await disk.exists(path)).toBe(false)
  })

  it('serves the old data when the disk refuses the new', async () => {
    client.create(1, '/a')
    await server.untilIdle()
    const taken = await snapshot()
    client.create(2, '/b')
    await server.untilIdle()
    server.disk.injectFault = (call, path) =>
      call === 'write' && path.includes('incoming') ? { code: 'EIO' } : undefined
    expect((await restore(taken)).status).toBe(500)
    server.disk.injectFault = undefined
    const again = await server.connect({ resume: client.session! })
    expect(await has(again, '/b')).toBe(true)
  })

  it('is refused while it is disabled, too early, by a caller without the role, and with a wrong method', async () => {
    const taken = await snapshot()
    const plain = await TestServer.start({ adminRoleAdmin: ['ip:127.0.0.1'] })
    expect(await restore(taken, plain)).toMatchObject({ status: 503, text: FAILED })
    await plain.stop()
    const other = await TestServer.start({ ...SETTINGS, adminRateLimitMs: 5000 })
    expect((await restore(taken, other)).status).toBe(200)
    expect(await restore(taken, other)).toMatchObject({
      status: 429,
      text: FAILED,
      headers: { 'retry-after': '5' },
    })
    const options = { method: 'POST', body: taken, from: '10.0.0.1' } as const
    expect((await other.http.request('/commands/restore', options)).status).toBe(401)
    expect((await other.http.request('/commands/restore')).status).toBe(405)
    await other.stop()
  })

  it('is refused while another one is being received', async () => {
    const body = await snapshot()
    const answers = await Promise.all([restore(body), restore(body)])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  })

  it('is refused by a member of an ensemble', async () => {
    const ensemble = await Ensemble.start(1, { ...SETTINGS })
    const taken = await snapshot()
    const { status, text } = await ensemble
      .member(1)
      .http.request('/commands/restore', { method: 'POST', body: taken })
    expect(status).toBe(409)
    expect(text).toContain('zabra restore --replace')
  })

  it('takes a snapshot of another server', async () => {
    client.create(1, '/a')
    await server.untilIdle()
    const taken = await snapshot()
    const other = await TestServer.start({ ...SETTINGS, snapshotCompression: 'gz' }, new MemoryDisk())
    expect((await restore(taken, other)).status).toBe(200)
    expect(await has(await other.connect(), '/a')).toBe(true)
    await other.stop()
  })
})
