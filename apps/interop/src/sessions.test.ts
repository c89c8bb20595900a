import { expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { Client } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { ours, reference, Server, type Kind } from './harness/servers.ts'

const tickMs = 500

/** Milliseconds from the last request of a session to the end of its ephemeral node, for some sessions. */
async function lifetimes(kind: Kind, timeoutMs: number): Promise<number[]> {
  await using server = await Server.start({ kind, config: { tickTime: tickMs } })
  const watcher = await Client.connect(server.port)
  const lives: number[] = []
  const live = async (index: number): Promise<void> => {
    const client = await Client.connect(server.port, { timeoutMs })
    expect(client.session.timeoutMs).toBe(timeoutMs)
    await client.create(`/e${index}`, '', 1)
    // Half of the time-out passes with pings, which must count as signs of life.
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
  await Promise.all([0, 1, 2, 3, 4, 5].map(live))
  await watcher.close()
  return lives
}

describeWith(['apache'], 'a silent session', () => {
  it('ends between its time-out and one tick more, dropped or not', async () => {
    const [apache, zabra] = await Promise.all([lifetimes(reference, 1500), lifetimes(ours, 1500)])
    for (const [name, lives] of [
      ['Apache ZooKeeper', apache],
      ['Zabra', zabra],
    ] as const) {
      // The slack is for a busy machine.
      for (const life of lives) {
        expect(life, name).toBeGreaterThan(1500 - 20)
        expect(life, name).toBeLessThan(1500 + tickMs + 400)
      }
    }
  })
})
