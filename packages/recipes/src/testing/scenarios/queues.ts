import { AbortedError, utf8, type Client } from '@zabra/client/core'
import { LostError } from '../../handles/lost.ts'
import { Queue, type Message, type PutOptions } from '../../queue/index.ts'
import { AmbiguousResultError } from '../../support/ambiguous-result.ts'
import { retryInNewSession, retryUntilKnown } from '../../support/retry.ts'
import { delay } from '../../support/delay.ts'
import type { RandomSource } from '../nemesis.ts'
import { DeliveryChecker } from './delivery-checker.ts'
import { expectEqual, type ScenarioContext, type Scenario } from './context.ts'

const queueOf = (client: Client): Queue<string> => new Queue(client, '/q', { codec: utf8 })

const ROUNDS = 6

/** Capacity of the bounded queue. */
const MOST = 2

/** Returns options for plain, urgent and delayed items. */
function optionsOf(prng: RandomSource): PutOptions {
  const kind = prng.pick(['plain', 'plain', 'urgent', 'late'] as const)
  if (kind === 'urgent') return { priority: prng.between(0, 10) }
  return kind === 'late' ? { delayMs: prng.between(0, 5000) } : {}
}

async function produce(
  { prng }: ScenarioContext,
  client: Client,
  name: string,
  account: DeliveryChecker,
): Promise<void> {
  for (let i = 0; i < ROUNDS; i++) {
    await delay(client, prng.between(0, 4000))
    const value = `${name}-${i}`
    await account.recordPut(value, queueOf(client).put(value, optionsOf(prng)))
  }
}

/** Runs consumers until the queue is empty after all faults have stopped, then stops them. */
async function whileProducing(
  context: ScenarioContext,
  account: DeliveryChecker,
  consume: (client: Client, signal: AbortSignal) => Promise<void>,
  atRest: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const { clients, names, observer, waitUntilHealed, sleep } = context
  const half = Math.ceil(clients.length / 3)
  const stop = new AbortController()
  const consuming = clients.slice(half).map((client) => consume(client, stop.signal))
  for (const each of consuming) each.catch(() => {})
  await Promise.all(clients.slice(0, half).map((client, i) => produce(context, client, names[i]!, account)))
  await waitUntilHealed()
  await atRest()
  while ((await queueOf(observer).size()) > 0) await sleep(200)
  stop.abort()
  for (const { status, reason } of (await Promise.allSettled(consuming)) as PromiseRejectedResult[])
    if (status === 'rejected' && !(reason instanceof AbortedError)) throw reason
}

/** Number of deliveries before an item moves to the dead letters. */
const DELIVERIES = 3

/** Every other item of a producer is bad and never acknowledged. */
const isBad = (value: string): boolean => Number(value.at(-1)) % 2 === 0

/**
 * Checks that every unacknowledged item moves to the dead letters once and unchanged, after the configured number
 * of deliveries.
 */
async function playDeadLetters(context: ScenarioContext): Promise<void> {
  const { prng, observer } = context
  const account = new DeliveryChecker()
  const delivered = new Map<string, number[]>()
  const inDoubt = new Set<string>()
  const work = async (client: Client, message: Message<string>): Promise<void> => {
    const { value, deliveries } = message
    delivered.set(value, [...(delivered.get(value) ?? []), deliveries])
    await delay(client, prng.between(0, 500))
    if (isBad(value) || prng.chance(20)) return message.nack({ delayMs: prng.pick([0, 0, 300]) })
    try {
      await message.ack()
      account.acknowledged.push(value)
    } catch (error) {
      if (error instanceof AmbiguousResultError) inDoubt.add(value)
      else if (!(error instanceof LostError)) throw error
    }
  }
  const late = Array.from({ length: 4 }, (_, i) => `late-${i}`)
  await whileProducing(
    context,
    account,
    async (client, signal) => {
      const queue = new Queue(client, '/q', { codec: utf8, deadLetterAfter: DELIVERIES })
      for await (const message of queue.receive({ signal })) await work(client, message)
    },
    async () => {
      for (const value of late) await account.recordPut(value, queueOf(observer).put(value))
    },
  )
  await observer.sync('/q')
  const dead = (await queueOf(observer).deadLetters()).map(({ data }) => utf8.decode(data))
  const gone = [...account.acknowledged, ...inDoubt]
  expectEqual(
    'lost',
    account.put.filter((value) => !dead.includes(value) && !gone.includes(value)),
    [],
  )
  expectEqual(
    'twice in the dead letters',
    dead.filter((value, at) => dead.indexOf(value) !== at),
    [],
  )
  expectEqual(
    'acknowledged and in the dead letters',
    account.acknowledged.filter((value) => dead.includes(value)),
    [],
  )
  const known = [...account.put, ...account.maybePut]
  expectEqual(
    'in the dead letters but never put',
    dead.filter((value) => !known.includes(value)),
    [],
  )
  const often = [...delivered].filter(([, counts]) => counts.some((count) => count > DELIVERIES))
  expectEqual('delivered too often', often, [])
  // Without faults every delivery arrives.
  for (const value of late.filter(isBad))
    expectEqual(`deliveries of ${value}`, delivered.get(value), [1, 2, 3])
}

export const queues: Readonly<Record<string, Scenario>> = {
  'queue, take': async (context) => {
    const account = new DeliveryChecker()
    await whileProducing(context, account, async (client, signal) => {
      while (!signal.aborted) await account.recordTake(queueOf(client).take({ signal }))
    })
    account.checkExactlyOnce()
  },
  'queue, receive': async (context) => {
    const { prng } = context
    const account = new DeliveryChecker()
    await whileProducing(context, account, async (client, signal) => {
      const working: Promise<void>[] = []
      const acknowledge = async (message: Message<string>): Promise<void> => {
        try {
          await message.ack()
          account.acknowledged.push(message.value)
        } catch (error) {
          if (!(error instanceof LostError || error instanceof AmbiguousResultError)) throw error
        }
      }
      const work = async (message: Message<string>): Promise<void> => {
        account.out.push(message.value)
        await delay(client, prng.between(0, 500))
        if (prng.chance(20)) return message.nack()
        const acknowledged = acknowledge(message)
        // Some consumers request the next message before the acknowledgement is complete.
        if (prng.chance(30)) working.push(acknowledged)
        else await acknowledged
      }
      const concurrency = prng.pick([1, 1, 3])
      try {
        for await (const message of queueOf(client).receive({ signal, concurrency })) {
          if (concurrency === 1) await work(message)
          else working.push(work(message))
        }
      } finally {
        await Promise.all(working)
      }
    })
    account.checkAtLeastOnce()
  },
  'queue, dead letters': playDeadLetters,
  'queue, bounded': async (context) => {
    const { observer, waitUntilHealed, sleep } = context
    const account = new DeliveryChecker()
    const stop = new AbortController()
    const bounded = (client: Client): Queue<string> =>
      new Queue(client, '/q', { codec: utf8, maxItems: MOST, bound: 'hard', deadLetterAfter: 1000 })
    let longest = 0
    const looking = (async () => {
      for (; !stop.signal.aborted; await sleep(50))
        longest = Math.max(
          longest,
          await retryInNewSession(observer, () => retryUntilKnown(observer, () => bounded(observer).size())),
        )
    })()
    looking.catch(() => {})
    const { prng, clients, names } = context
    const half = Math.ceil(clients.length / 2)
    const taking = clients.slice(half).map(async (client) => {
      while (!stop.signal.aborted) {
        await delay(client, prng.between(0, 1500))
        await account.recordTake(bounded(client).take({ signal: stop.signal }))
      }
    })
    for (const each of taking) each.catch(() => {})
    const putting = clients.slice(0, half).map(async (client, i) => {
      for (let n = 0; n < ROUNDS; n++)
        await account.recordPut(`${names[i]}-${n}`, bounded(client).put(`${names[i]}-${n}`))
    })
    for (const each of putting) each.catch(() => {})
    await sleep(20_000)
    await waitUntilHealed()
    await Promise.all(putting)
    while ((await bounded(observer).size()) > 0) await sleep(200)
    stop.abort()
    await looking
    for (const { status, reason } of (await Promise.allSettled(taking)) as PromiseRejectedResult[])
      if (status === 'rejected' && !(reason instanceof AbortedError)) throw reason
    if (longest > MOST) throw new Error(`there were ${longest} items, ${MOST} may be`)
    account.checkExactlyOnce()
  },
}
