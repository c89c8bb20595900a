import { expect, it } from 'vitest'
import { until } from './ensemble/ensemble.ts'
import { bytes } from './harness/bytes.ts'
import { Client } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { freePort } from './harness/ports.ts'
import { Server } from './harness/servers.ts'

/** More lines than the pipe and the memory for them can hold. */
const WRITES = 12_000
const BATCH = 1000
/** Slower by more is no accident. */
const FACTOR = 3

it('a server serves on while the reader of its log has stopped, and tells it then how many lines are lost', async () => {
  const adminPort = await freePort()
  // Without a file, audit lines are lines of the log.
  const config = { 'audit.enable': 'true', 'admin.enableServer': 'true', 'admin.serverPort': adminPort }
  await using server = await Server.start({ kind: 'zabra', config })
  const lost = async (): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
    return Number(/^zabra_log_lost_total (\d+)/m.exec(text)?.[1])
  }
  const client = await Client.connect(server.port)
  await client.create('/a')
  expect(await lost()).toBe(0)
  const body = bytes().str('/a').buffer('x').int(-1).done()
  /** Sends the writes in batches. Resolves to how long the fastest batch waited for its slowest reply, in milliseconds. */
  const write = async (): Promise<number> => {
    let fastest = Infinity
    for (let sent = 0; sent < WRITES; sent += BATCH) {
      const begun = performance.now()
      const replies = await Promise.all(Array.from({ length: BATCH }, () => client.request(op.setData, body)))
      expect(replies.filter(({ err }) => err === 0)).toHaveLength(BATCH)
      fastest = Math.min(fastest, performance.now() - begun)
    }
    return fastest
  }
  const before = await write()
  server.ignoreOutput()
  const meanwhile = await write()
  // The fastest of many: other programs on the machine hold up others of them.
  expect(meanwhile).toBeLessThan(FACTOR * before)
  const lines = await lost()
  expect(lines).toBeGreaterThan(0)
  server.readOutput()
  await until('the line about lost ones', () => Promise.resolve(server.output.includes(`"lost":${lines},`)))
  await client.close()
  await server.stop()
  expect(server.output).toContain('Stopped; everything is on disk')
}, 60_000)
