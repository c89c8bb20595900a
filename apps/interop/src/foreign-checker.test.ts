import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { History, type Evidence, type Operation } from 'zabra-simulator'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { faultNames, faults } from './ensemble/faults.ts'
import { describeWith } from './harness/requirements.ts'
import { countFromEnv, Prng, seedFromEnv } from './harness/prng.ts'
import { readEvidence, violationsOf } from './histories/own-checkers.ts'
import { Porcupine, type Verdict } from './histories/porcupine.ts'
import { connectRecorded } from './histories/recorded-client.ts'
import { isRegister, LOCKS, prepare, runWorkload, SET } from './histories/workload.ts'

const rounds = countFromEnv('ZABRA_HISTORY_ROUNDS', 2)
const seed = seedFromEnv()
const CLIENTS = 5
/** Requests to answer after each fault. */
const REQUESTS = 250

const answered = ({ operations }: History): number =>
  operations.filter(({ outcome }) => outcome === 'answered').length

/** Runs clients while faults are injected in turn. Resolves to what they saw and what the members logged. */
async function record(): Promise<Evidence> {
  // No log is removed: each transaction is still in the log of a member at the end.
  const config = { snapCount: 1_000_000, 'autopurge.purgeInterval': 0 }
  const ensemble = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'], proxied: true, config })
  const prng = new Prng(seed)
  const history = new History()
  const servers = ensemble.ids.map((id) => ensemble.member(id).address)
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, (_, index) => connectRecorded(`c${index}`, servers, history, 16_000)),
  )
  await prepare(clients[0]!)
  const stop = new AbortController()
  const load = Promise.all(
    clients.map((client, index) =>
      runWorkload(`c${index}`, client, new Prng(prng.int(2 ** 31)), stop.signal),
    ),
  )
  for (let round = 0; round < rounds; round++) {
    const before = answered(history)
    const name = faultNames[(round + prng.int(faultNames.length)) % faultNames.length]!
    await faults[name](ensemble, prng)
    await ensemble.leader()
    await until('clients that are answered again', () =>
      Promise.resolve(answered(history) >= before + REQUESTS),
    )
  }
  stop.abort()
  await load
  await Promise.all(clients.map((client) => client.close()))
  await ensemble.waitUntilSynced()
  await ensemble.stop(...ensemble.ids)
  return readEvidence(ensemble, history)
}

/** Returns the operations with the first that matches changed; undefined where none matches. */
function changed(
  evidence: Evidence,
  matches: (operation: Operation) => boolean,
  change: (operation: Operation) => Partial<Operation>,
): Evidence | undefined {
  const { history, ...rest } = evidence
  const copy = new History()
  const found = history.operations.find(matches)
  if (found === undefined) return undefined
  const other = { ...found, ...change(found) }
  copy.operations.push(...history.operations.map((one) => (one === found ? other : one)))
  copy.events.push(...history.events.map((one) => (one === found ? other : one)))
  return { ...rest, history: copy }
}

const illegal = (verdicts: ReadonlyMap<string, Verdict>): string[] =>
  [...verdicts].filter(([, verdict]) => verdict !== 'Ok').map(([name]) => name)

const pathOf = ({ request }: Operation): string | undefined => ('path' in request ? request.path : undefined)

const isOn = (one: Operation, paths: readonly string[]): boolean => paths.includes(pathOf(one) ?? '')

/** Returns whether no other request for the same znode can have taken effect during this one. */
const isAlone = (one: Operation, operations: readonly Operation[]): boolean =>
  operations.every(
    (other) =>
      other === one ||
      pathOf(other) !== pathOf(one) ||
      other.invoked > one.returned ||
      (other.outcome === 'answered' && other.returned < one.invoked),
  )

/** Returns three reads of one register by one session that show three different values, in their order. */
function successiveReads(operations: readonly Operation[]): readonly [Operation, Operation, Operation] {
  const seen = new Map<string, Operation[]>()
  for (const one of operations) {
    if (one.request.op !== 'get' || !isRegister(one.request.path) || one.result.stat === undefined) continue
    const key = `${one.session} ${one.request.path}`
    const reads = seen.get(key) ?? []
    seen.set(key, reads)
    if (reads.at(-1)?.result.data !== one.result.data) reads.push(one)
    if (reads.length === 3) return reads as [Operation, Operation, Operation]
  }
  throw new Error('No session read three values of a register')
}

describeWith(['go'], 'Porcupine', () => {
  it(
    `agrees with the simulator's checkers about a history under ${rounds} faults, and about false ones`,
    { timeout: 120_000 + rounds * 30_000 },
    async () => {
      const porcupine = Porcupine.build()
      const evidence = await record()
      const { operations } = evidence.history
      console.log(
        `histories: seed ${seed}, ${operations.length} requests, ${answered(evidence.history)} answered`,
      )
      const replay = `replay with: ZABRA_SEED=${seed} ZABRA_HISTORY_ROUNDS=${rounds} npx vitest run src/foreign-checker.test.ts`
      expect(violationsOf(evidence), replay).toEqual([])
      expect(illegal(porcupine.check(evidence.history)), replay).toEqual([])

      const [old, , young] = successiveReads(operations)
      const isYoung = (one: Operation): boolean => one === young
      const stale = changed(evidence, isYoung, () => ({ result: old.result, zxid: old.zxid }))
      const invented = changed(evidence, isYoung, ({ result }) => ({ result: { ...result, data: 'x' } }))
      const refused = (one: Operation): boolean =>
        one.request.op === 'set' && one.result.err === ErrorCode.BADVERSION
      const accepted = changed(evidence, refused, () => ({ result: { err: 0, stat: old.result.stat! } }))
      // A lock that two have taken.
      const queued = (one: Operation): boolean =>
        isOn(one, LOCKS) && one.request.op === 'create' && one.result.err === ErrorCode.NODEEXISTS
      const shared = changed(
        evidence,
        (one) => queued(one) && isAlone(one, operations),
        (one) => ({ result: { err: 0, path: pathOf(one)! } }),
      )
      // A set with an element that no client has added.
      const listed = (one: Operation): boolean => isOn(one, [SET]) && one.result.children !== undefined
      const larger = changed(evidence, listed, ({ result }) => ({
        result: { ...result, children: [...result.children!, '63'] },
      }))
      const wrongs = { stale, invented, accepted, shared, larger }
      expect([stale, invented, larger]).not.toContain(undefined)
      for (const [name, wrong] of Object.entries(wrongs)) {
        // A short history may have no lock that is refused once, while it is held, and no stale version.
        if (wrong === undefined) continue
        expect(violationsOf(wrong), name).not.toEqual([])
        expect(illegal(porcupine.check(wrong.history)), name).not.toEqual([])
      }
    },
  )
})
