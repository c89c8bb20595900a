import { expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { Client } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { serverUnderTest, reference, Server, type Kind } from './harness/servers.ts'

const tickMs = 500

/**
 * Opens a session with an ephemeral node, and keeps it open by pings at half of its timeout. Resolves to the client and when the last
 * ping was sent, in milliseconds. Begins again when this program did not come to send a ping in time.
 */
async function keepOpen(port: number, path: string, timeoutMs: number): Promise<[Client, number]> {
  for (;;) {
    const client = await Client.connect(port, { timeoutMs })
    expect(client.session.timeoutMs).toBe(timeoutMs)
    let sent = performance.now()
    try {
      await client.create(path, '', 1)
      for (let pings = 0; pings < 3; pings++) {
        await new Promise((done) => setTimeout(done, timeoutMs / 2))
        const now = performance.now()
        await client.request(op.ping, undefined, -2)
        sent = now
      }
      return [client, sent]
    } catch (error) {
      if (performance.now() - sent < timeoutMs) throw error
      path += '-again'
    }
  }
}

/** Milliseconds from the last request of a session to the last question that found its ephemeral node, and to the first that did not. */
interface Lifetime {
  readonly seen: number
  readonly gone: number
}

/** Measures the lifetimes of six sessions. */
async function lifetimes(kind: Kind, timeoutMs: number): Promise<Lifetime[]> {
  await using server = await Server.start({ kind, config: { tickTime: tickMs } })
  const watcher = await Client.connect(server.port)
  const lives: Lifetime[] = []
  const measure = async (index: number): Promise<void> => {
    const [client, last] = await keepOpen(server.port, `/e${index}-`, timeoutMs)
    if (index % 2 === 0) client.drop()
    // A question that waits for a busy machine says nothing of the time in between.
    let [seen, asked] = [last, performance.now()]
    while ((await watcher.children('/')).some((name) => name.startsWith(`e${index}-`))) {
      seen = asked
      await new Promise((done) => setTimeout(done, 5))
      asked = performance.now()
    }
    lives.push({ seen: seen - last, gone: performance.now() - last })
    if (index % 2 === 1) await client.connection.closed
  }
  await Promise.all([0, 1, 2, 3, 4, 5].map(measure))
  await watcher.close()
  return lives
}

describeWith(['apache'], 'a silent session', () => {
  it('expires between its timeout and one tick more, with its connection open or closed', async () => {
    const [apache, zabra] = await Promise.all([lifetimes(reference, 1500), lifetimes(serverUnderTest, 1500)])
    for (const { gone } of [...apache, ...zabra]) expect(gone).toBeGreaterThan(1500 - 20)
    // On a busy machine both are late.
    const latest = Math.max(1500 + tickMs + 400, ...apache.map(({ seen }) => seen + tickMs))
    for (const { seen } of zabra) expect(seen).toBeLessThan(latest)
  })
})
