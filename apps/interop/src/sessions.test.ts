import { expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { Client } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { serverUnderTest, reference, Server, type Kind } from './harness/servers.ts'

const tickMs = 500

/** Measures the milliseconds from the last request of a session to the deletion of its ephemeral node, for six sessions. */
async function lifetimes(kind: Kind, timeoutMs: number): Promise<number[]> {
  await using server = await Server.start({ kind, config: { tickTime: tickMs } })
  const watcher = await Client.connect(server.port)
  const lives: number[] = []
  const measure = async (index: number): Promise<void> => {
    const client = await Client.connect(server.port, { timeoutMs })
    expect(client.session.timeoutMs).toBe(timeoutMs)
    await client.create(`/e${index}`, '', 1)
    // Pings at half the timeout must keep the session open.
    for (let pings = 0; pings < 3; pings++) {
      await new Promise((done) => setTimeout(done, timeoutMs / 2))
      await client.request(op.ping, undefined, -2)
    }
    const last = performance.now()
    if (index % 2 === 0) client.drop()
    while (await watcher.exists(`/e${index}`)) await new Promise((done) => setTimeout(done, 5))
    lives.push(performance.now() - last)
    if (index % 2 === 1) await client.connection.closed
  }
  await Promise.all([0, 1, 2, 3, 4, 5].map(measure))
  await watcher.close()
  return lives
}

describeWith(['apache'], 'a silent session', () => {
  it('expires between its timeout and one tick more, with its connection open or closed', async () => {
    const [apache, zabra] = await Promise.all([lifetimes(reference, 1500), lifetimes(serverUnderTest, 1500)])
    for (const [name, lives] of [
      ['Apache ZooKeeper', apache],
      ['Zabra', zabra],
    ] as const) {
      // The margins allow for a busy machine.
      for (const life of lives) {
        expect(life, name).toBeGreaterThan(1500 - 20)
        expect(life, name).toBeLessThan(1500 + tickMs + 400)
      }
    }
  })
})
