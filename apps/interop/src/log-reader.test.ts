import { expect, it } from 'vitest'
import { until } from './ensemble/ensemble.ts'
import { bytes } from './harness/bytes.ts'
import { Client } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { freePort } from './harness/ports.ts'
import { Server } from './harness/servers.ts'

/** Several times as many lines as the pipe and the memory for them can hold. */
const WRITES = 24_000
const BATCH = 1000
const MIB = 2 ** 20
/** What waits in the server, and in the kernel and in this process on the way to the test. */
const HELD_BYTES = MIB + MIB
/** Clients of this test send no pings. */
const SESSION_MS = 600_000

it('a server serves on while the reader of its log has stopped, and tells it then how many lines are lost', async () => {
  const adminPort = await freePort()
  // Without a file, audit lines are lines of the log. A busy machine makes no others.
  const config = {
    'audit.enable': 'true',
    'admin.enableServer': 'true',
    'admin.serverPort': adminPort,
    'slow.request.ms': 0,
    'fsync.warningthresholdms': SESSION_MS,
    maxSessionTimeout: SESSION_MS,
  }
  await using server = await Server.start({ kind: 'zabra', config })
  const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${adminPort}${path}`)
  const lost = async (): Promise<number> =>
    Number(/^zabra_log_lost_total (\d+)/m.exec(await (await get('/metrics')).text())?.[1])
  let text = ''
  server.standardOutput.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const linesOf = (path: string): number => text.split(`setData\\tznode=${path}\\t`).length - 1
  const lostInLine = (): number | undefined => {
    const [, count] = /"id":"program\.lines-lost".*"lost":(\d+),/.exec(text) ?? []
    return count === undefined ? undefined : Number(count)
  }
  const write = async (client: Client, path: string, afterBatch = async () => {}): Promise<void> => {
    const body = bytes().str(path).buffer('x').int(-1).done()
    for (let sent = 0; sent < WRITES; sent += BATCH) {
      const replies = await Promise.all(Array.from({ length: BATCH }, () => client.request(op.setData, body)))
      expect(replies.filter(({ err }) => err === 0)).toHaveLength(BATCH)
      await afterBatch()
    }
  }
  const client = await Client.connect(server.port, { timeoutMs: SESSION_MS })
  for (const path of ['/read', '/unread']) await client.create(path)
  let written = 0
  await write(client, '/read', () => {
    written += BATCH
    return until('the lines of a batch', () => Promise.resolve(linesOf('/read') === written))
  })
  expect(await lost()).toBe(0)

  server.standardOutput.pause()
  const before = text.length
  await write(client, '/unread')
  // A client that comes meanwhile is served, too.
  const other = await Client.connect(server.port, { timeoutMs: SESSION_MS })
  await other.create('/meanwhile')
  expect((await get('/readyz')).status).toBe(200)
  const counted = await lost()
  expect(counted).toBeGreaterThan(0)

  server.standardOutput.resume()
  await until('the line about lost ones', () => Promise.resolve(lostInLine() !== undefined))
  const missing = lostInLine()!
  // Lines may have been lost after they were counted.
  expect(missing).toBeGreaterThanOrEqual(counted)
  const held = text.slice(before, text.indexOf(`"lost":${missing},`))
  expect(held.length).toBeLessThan(HELD_BYTES)
  // Each line is either read or counted, of few others beside them.
  expect(linesOf('/unread') + missing).toBeGreaterThanOrEqual(WRITES)
  expect(linesOf('/unread') + missing).toBeLessThan(WRITES + 100)
  await other.set('/read', 'after')
  await until('the line of a later write', () => Promise.resolve(linesOf('/read') === WRITES + 1))
  expect(await lost()).toBe(missing)
  await client.close()
  await other.close()
  await server.stop()
  expect(server.output).toContain('Stopped; everything is on disk')
}, 600_000)
