import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { Client, ErrorReply } from './harness/client.ts'
import { countFromEnv, Prng, seedFromEnv } from './harness/prng.ts'
import { ours, Server } from './harness/servers.ts'
import { LoadClient } from './crash/load-client.ts'

const rounds = countFromEnv('ZABRA_KILL_ROUNDS', 15)
const seed = seedFromEnv()
const workersPerRound = 4
const replay = `replay with: ZABRA_SEED=${seed} ZABRA_KILL_ROUNDS=${rounds} npx vitest run src/kill.test.ts (the seed fixes load and moments, the machine still decides the interleaving)`

/** Waits until the condition holds, because sessions end by the server's own clock. */
async function eventually(
  what: string,
  condition: () => Promise<boolean>,
  withinMs: number,
): Promise<string[]> {
  const deadline = Date.now() + withinMs
  while (!(await condition())) {
    if (Date.now() > deadline) return [`${what} did not happen within ${withinMs} ms`]
    await new Promise((done) => setTimeout(done, 50))
  }
  return []
}

describeWith(ours === 'zabra' ? [] : ['apache'], 'a server killed in the middle of its work', () => {
  let server: Server
  const tally = { writes: 0, unknown: 0, snapshots: 0 }

  beforeAll(async () => {
    // Small numbers, so that snapshots, new log files and expiring sessions all fall into a round.
    server = await Server.start({
      kind: ours,
      config: { tickTime: 200, maxSessionTimeout: 60_000, snapCount: 150, snapTreeShare: 0 },
    })
    console.log(`kill: seed ${seed}, ${rounds} rounds`)
  })

  afterAll(async () => {
    console.log(
      `kill: ${rounds} rounds, ${tally.writes} acknowledged writes, ${tally.unknown} with unknown outcome`,
    )
    await server[Symbol.asyncDispose]()
  })

  it(
    `loses no acknowledged write and keeps no half of a multi in ${rounds} rounds`,
    { timeout: 60_000 + rounds * 10_000 },
    async () => {
      const prng = new Prng(seed)
      let zxid = 0n
      for (let round = 0; round < rounds; round++) {
        const violations = await oneRound(server, round, prng, zxid)
        expect(violations.wrong, `round ${round}: ${replay}\n${server.output.slice(-2000)}`).toEqual([])
        zxid = violations.zxid
      }
      expect(tally.writes).toBeGreaterThan(rounds * 20)
    },
  )

  async function oneRound(
    target: Server,
    round: number,
    prng: Prng,
    before: bigint,
  ): Promise<{ wrong: string[]; zxid: bigint }> {
    const wrong: string[] = []
    const workers = await Promise.all(
      Array.from({ length: workersPerRound }, (_, index) =>
        LoadClient.start(target.port, `/r${round}w${index}`, new Prng(prng.int(2 ** 31)), 30_000),
      ),
    )
    const leaving = await Client.connect(target.port, { timeoutMs: 400 })
    await leaving.create(`/r${round}leaving`, '', 1)
    const closed = await Client.connect(target.port)
    await closed.create(`/r${round}closed`, '', 1)
    await closed.close()

    const loads = workers.map((worker) => worker.run())
    await new Promise((done) => setTimeout(done, 10 + prng.int(350)))
    await target.kill()
    await Promise.all(loads)
    await target.start()

    const reader = await Client.connect(target.port)
    for (const worker of workers)
      wrong.push(...(await worker.violations(reader)), ...(await worker.ephemeralViolations(reader)))
    const highest = workers.reduce(
      (high, { highestZxid }) => (highestZxid > high ? highestZxid : high),
      before,
    )
    const now = await reader.create(`/r${round}zxid`).then(() => reader.get(`/r${round}zxid`))
    if (now.stat.czxid <= highest)
      wrong.push(`zxid ${now.stat.czxid} was given again: ${highest} was acknowledged before the crash`)

    // A session that lived goes on and ends with its nodes; one that was closed is gone; one left alone expires.
    for (const worker of workers) {
      const { id, password } = worker.client.session
      const resumed = await Client.connect(target.port, {
        resume: { id, password },
        timeoutMs: 30_000,
      }).catch((error: Error) => error)
      if (!(resumed instanceof Client))
        wrong.push(`${worker.root}: the session was not resumed: ${resumed.message}`)
      else await resumed.close()
      const left = await reader.children(`${worker.root}/ephemerals`)
      if (left.length > 0) wrong.push(`${worker.root}: ${left.length} ephemeral nodes outlive their session`)
    }
    const again = await Client.connect(target.port, { resume: closed.session }).catch(
      (error: unknown) => error,
    )
    if (!(again instanceof ErrorReply)) wrong.push('a session that was closed before the crash was resumed')
    if (await reader.exists(`/r${round}closed`)) wrong.push('the ephemeral node of a closed session is back')
    leaving.drop()
    wrong.push(
      ...(await eventually(
        'the expiry of an abandoned session',
        async () => !(await reader.exists(`/r${round}leaving`)),
        5000,
      )),
    )
    for (const { created, counted, paired, deleted, ephemerals } of workers) {
      for (const { sent, acknowledged } of [created, counted, paired, deleted, ephemerals]) {
        tally.writes += acknowledged
        tally.unknown += sent - acknowledged
      }
    }
    const zxid = now.stat.czxid
    await reader.close()
    return { wrong, zxid }
  }
})
