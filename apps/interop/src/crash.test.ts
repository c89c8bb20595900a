import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWith, isLong } from './harness/requirements.ts'
import { Client, ErrorReply } from './harness/client.ts'
import { countFromEnv, Prng, seedFromEnv } from './harness/prng.ts'
import { serverUnderTest, Server } from './harness/servers.ts'
import { LoadClient } from './crash/load-client.ts'

const rounds = countFromEnv('ZABRA_KILL_ROUNDS', isLong ? 15 : 8)
const seed = seedFromEnv()
const workersPerRound = 4
const replay = `replay with: ZABRA_SEED=${seed} ZABRA_KILL_ROUNDS=${rounds} npx vitest run src/crash.test.ts (the seed determines the load and the times of the kills, not the interleaving)`

/** Polls until a condition holds, and returns a violation after the timeout. */
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

describeWith(serverUnderTest === 'zabra' ? [] : ['apache'], 'a server killed under load', () => {
  let server: Server
  const totals = { writes: 0, unknown: 0, snapshots: 0 }

  beforeAll(async () => {
    // Small limits, so that each round has snapshots, log rollovers and session expiries.
    server = await Server.start({
      kind: serverUnderTest,
      config: { tickTime: 200, maxSessionTimeout: 60_000, snapCount: 150, snapTreeShare: 0 },
    })
    console.log(`crash: seed ${seed}, ${rounds} rounds`)
  })

  afterAll(async () => {
    console.log(
      `crash: ${rounds} rounds, ${totals.writes} acknowledged writes, ${totals.unknown} with unknown outcome`,
    )
    await server[Symbol.asyncDispose]()
  })

  it(
    `loses no acknowledged write and applies no multi in part, over ${rounds} rounds`,
    { timeout: 60_000 + rounds * 10_000 },
    async () => {
      const prng = new Prng(seed)
      let zxid = 0n
      for (let round = 0; round < rounds; round++) {
        const outcome = await runRound(server, round, prng, zxid)
        expect(outcome.violations, `round ${round}: ${replay}\n${server.output.slice(-2000)}`).toEqual([])
        zxid = outcome.zxid
      }
      expect(totals.writes).toBeGreaterThan(rounds * 20)
    },
  )

  async function runRound(
    target: Server,
    round: number,
    prng: Prng,
    before: bigint,
  ): Promise<{ violations: string[]; zxid: bigint }> {
    const violations: string[] = []
    const workers = await Promise.all(
      Array.from({ length: workersPerRound }, (_, index) =>
        LoadClient.start(target.port, `/r${round}w${index}`, new Prng(prng.int(2 ** 31)), 30_000),
      ),
    )
    const abandoned = await Client.connect(target.port, { timeoutMs: 400 })
    await abandoned.create(`/r${round}leaving`, '', 1)
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
      violations.push(...(await worker.violations(reader)), ...(await worker.ephemeralViolations(reader)))
    const highest = workers.reduce(
      (high, { highestZxid }) => (highestZxid > high ? highestZxid : high),
      before,
    )
    const now = await reader.create(`/r${round}zxid`).then(() => reader.get(`/r${round}zxid`))
    if (now.stat.czxid <= highest)
      violations.push(`zxid ${now.stat.czxid} was given again: ${highest} was acknowledged before the crash`)

    // An open session resumes, and its close deletes its nodes; a closed session does not resume; an abandoned one expires.
    for (const worker of workers) {
      const { id, password } = worker.client.session
      const resumed = await Client.connect(target.port, {
        resume: { id, password },
        timeoutMs: 30_000,
      }).catch((error: Error) => error)
      if (!(resumed instanceof Client))
        violations.push(`${worker.root}: the session was not resumed: ${resumed.message}`)
      else await resumed.close()
      const left = await reader.children(`${worker.root}/ephemerals`)
      if (left.length > 0)
        violations.push(`${worker.root}: ${left.length} ephemeral nodes outlive their session`)
    }
    const again = await Client.connect(target.port, { resume: closed.session }).catch(
      (error: unknown) => error,
    )
    if (!(again instanceof ErrorReply))
      violations.push('a session that was closed before the crash was resumed')
    if (await reader.exists(`/r${round}closed`))
      violations.push('the ephemeral node of a closed session is back')
    abandoned.drop()
    violations.push(
      ...(await eventually(
        'the expiry of an abandoned session',
        async () => !(await reader.exists(`/r${round}leaving`)),
        5000,
      )),
    )
    for (const { created, counted, paired, deleted, ephemerals } of workers) {
      for (const { sent, acknowledged } of [created, counted, paired, deleted, ephemerals]) {
        totals.writes += acknowledged
        totals.unknown += sent - acknowledged
      }
    }
    const zxid = now.stat.czxid
    await reader.close()
    return { violations, zxid }
  }
})
