import { SessionExpiredError, type Client } from '@zabra/client/core'
import { Barrier } from '../../barrier/index.ts'
import { DoubleBarrier } from '../../double-barrier/index.ts'
import {
  TwoPhaseCommit,
  type Decision,
  type ParticipantHandlers,
  type Vote,
} from '../../two-phase-commit/index.ts'
import { AmbiguousResultError } from '../../support/ambiguous-result.ts'
import { delay } from '../../support/delay.ts'
import type { Scenario } from './context.ts'

const ROUNDS = 3

export const barriers: Readonly<Record<string, Scenario>> = {
  barrier: async ({ prng, clients, observer, sleep, waitUntilHealed }) => {
    const gate = new Barrier(observer, '/gate/b')
    let isOpen = false
    await gate.set()
    // Wait until every client's server has applied the barrier, so that none passes before it can know of it.
    await Promise.all(clients.map((client) => client.sync('/gate').catch(() => {})))
    const waits = clients.map(async (client) => {
      await client.sync('/gate').catch(() => {})
      await new Barrier(client, '/gate/b').wait()
      if (!isOpen) throw new Error('a waiter passed before the barrier was open')
    })
    for (const wait of waits) wait.catch(() => {})
    await sleep(prng.between(5000, 40_000))
    isOpen = true
    await gate.remove()
    await waitUntilHealed()
    await Promise.all(waits)
  },
  'double barrier': async ({ prng, clients, names, waitUntilHealed }) => {
    const size = clients.length
    const over = new AbortController()
    /** By member: whether it waits to enter, and the last round that it entered. */
    const waits = clients.map(() => false)
    const rounds = clients.map(() => -1)
    /** By member: when it began to leave each round, as a position in the order of all events. */
    const leaving = clients.map(() => new Map<number, number>())
    const left: { round: number; at: number }[] = []
    const missed = clients.map(() => 0)
    let order = 0
    const play = async (client: Client, i: number): Promise<void> => {
      const barrier = new DoubleBarrier(client, '/meet', { members: size })
      for (let round = -1; round < ROUNDS - 1;) {
        await delay(client, prng.between(0, 2000))
        waits[i] = true
        try {
          const entered = await barrier.enter({ signal: over.signal })
          round = entered.round
          waits[i] = false
          rounds[i] = round
          for (const [member, last] of rounds.entries())
            if (!waits[member] && last < round && missed[member] === 0)
              throw new Error(`round ${round} began without ${names[member]}`)
          await delay(client, prng.between(0, 1000))
          leaving[i]!.set(round, order++)
          await entered.release({ signal: over.signal })
          if (!over.signal.aborted) left.push({ round, at: order++ })
        } catch (error) {
          waits[i] = false
          if ((error as Error).name === 'AbortError') return
          if (!(error instanceof SessionExpiredError || error instanceof AmbiguousResultError)) throw error
          missed[i]!++
        }
      }
    }
    let done = 0
    const all = clients.map((client, i) => play(client, i).then(() => void done++))
    for (const each of all) each.catch(() => {})
    await delay(clients[0]!, 30_000)
    await waitUntilHealed()
    // A member that missed a round waits for members that have finished; no other member may.
    const noneMissed = missed.every((count) => count === 0)
    if (noneMissed) await Promise.all(all)
    over.abort()
    await Promise.all(all)
    if (noneMissed && done < size) throw new Error(`only ${done} of ${size} are through`)
    for (const { round, at } of left)
      for (const [i, own] of leaving.entries())
        if (missed[i] === 0 && !((own.get(round) ?? Infinity) < at))
          throw new Error(`a member left round ${round} before ${names[i]} left it`)
  },
  'two-phase commit': async ({ prng, clients, names, waitUntilHealed, sleep }) => {
    const outcomes = new Map<string, Set<Decision>>()
    const failures: unknown[] = []
    const handlers = (vote: () => Vote): ParticipantHandlers => {
      const note = (id: string, outcome: Decision): Promise<void> => {
        outcomes.set(id, (outcomes.get(id) ?? new Set()).add(outcome))
        return Promise.resolve()
      }
      return {
        prepare: ({ payload }) => {
          const own = vote()
          if (own === 'abort') vetoed.add(new TextDecoder().decode(payload))
          return Promise.resolve(own)
        },
        commit: ({ id }) => note(id, 'committed'),
        abort: ({ id }) => note(id, 'aborted'),
        onFailed: (error) => void failures.push(error),
      }
    }
    /** Payloads that a site voted against. */
    const vetoed = new Set<string>()
    const sites = clients.slice(0, -2)
    const running = sites.map((client, i) =>
      new TwoPhaseCommit(client, '/pay').join(
        names[i]!,
        handlers(() => (prng.chance(8) ? 'abort' : 'commit')),
      ),
    )
    const messages: { payload: string; outcome: Decision }[] = []
    await Promise.all(
      clients.slice(-2).map(async (client, c) => {
        for (let round = 0; round < 4; round++) {
          await delay(client, prng.between(0, 5000))
          const payload = `${c}-${round}`
          try {
            const outcome = await new TwoPhaseCommit(client, '/pay').run({
              participants: names.slice(0, sites.length),
              payload: new TextEncoder().encode(payload),
              deadlineMs: prng.between(1000, 20_000),
            })
            messages.push({ payload, outcome })
          } catch (error) {
            if (!(error instanceof AmbiguousResultError)) throw error
          }
        }
      }),
    )
    await waitUntilHealed()
    await sleep(20_000)
    if (failures.length > 0) throw failures[0]
    for (const [id, seen] of outcomes)
      if (seen.size > 1) throw new Error(`${id} was both committed and aborted`)
    for (const { payload, outcome } of messages)
      if (outcome === 'committed' && vetoed.has(payload))
        throw new Error(`${payload} was committed although a site had voted against it`)
    await Promise.all(running.map(async (site) => (await site).release()))
  },
}
