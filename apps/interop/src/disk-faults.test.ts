import { execFileSync } from 'node:child_process'
import { realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from './ensemble/ensemble.ts'
import { Client } from './harness/client.ts'
import { describeWith } from './harness/requirements.ts'
import { scratch, Server } from './harness/servers.ts'

const source = resolve(import.meta.dirname, '../c/disk-faults.c')
const [EIO, ENOSPC, EROFS] = [5, 28, 30]
/** Writes before the fault, and at most during it. */
const WRITES = 40

describeWith(['cc'], 'a server whose calls to the file system fail', () => {
  const fault = join(scratch('disk-faults-switch'), 'fault')
  const acknowledged: string[] = []
  let sent = 0
  let server: Server

  beforeAll(async () => {
    const library = join(scratch('disk-faults'), 'disk-faults.so')
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { stdio: 'pipe' })
    const dataDir = realpathSync(scratch('disk-faults-data'))
    server = await Server.start({
      kind: 'zabra',
      dataDir,
      config: { snapCount: 10, snapTreeShare: 0 },
      env: { LD_PRELOAD: library, ZABRA_FAULT: fault, ZABRA_FAULT_FOLDER: dataDir },
    })
  })
  afterAll(() => server[Symbol.asyncDispose]())

  /** Creates nodes; resolves to whether all were acknowledged. */
  const write = async (): Promise<boolean> => {
    const client = await Client.connect(server.port).catch(() => undefined)
    if (client === undefined) return false
    for (let n = 0; n < WRITES; n++) {
      const path = `/n${sent++}`
      const isDone = await client.create(path).then(
        () => true,
        () => false,
      )
      if (!isDone) return false
      acknowledged.push(path)
    }
    await client.close()
    return true
  }

  it.each([
    { calls: 'writes that write half', call: 'short 1', outcome: 'serves', says: '' },
    { calls: 'writes with ENOSPC', call: `write ${ENOSPC}`, outcome: 'refuses', says: 'ENOSPC' },
    { calls: 'writes with EIO', call: `write ${EIO}`, outcome: 'stops', says: 'EIO' },
    { calls: 'writes with EROFS', call: `write ${EROFS}`, outcome: 'stops', says: 'EROFS' },
    { calls: 'syncs with EIO', call: `sync ${EIO}`, outcome: 'stops', says: 'EIO' },
    { calls: 'renames with EIO', call: `rename ${EIO}`, outcome: 'serves', says: 'A snapshot failed' },
    { calls: 'new files with EROFS', call: `create ${EROFS}`, outcome: 'stops', says: 'EROFS' },
  ] as const)('in $calls $outcome, and has every acknowledged write later', async (row) => {
    expect(await write()).toBe(true)
    writeFileSync(fault, row.call)
    expect(await write()).toBe(row.outcome === 'serves')
    if (row.outcome === 'stops') await until('the end of the server', async () => !server.isRunning)
    else expect(server.isRunning).toBe(true)
    expect(server.output).toContain(row.says)
    rmSync(fault)
    if (row.outcome !== 'stops') await until('writes again', write)
    await server.kill()
    await server.start()
    const reader = await Client.connect(server.port)
    expect(await reader.children('/')).toEqual(
      expect.arrayContaining(acknowledged.map((path) => path.slice(1))),
    )
    await reader.close()
  })
})
