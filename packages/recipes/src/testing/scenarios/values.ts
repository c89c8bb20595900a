import { utf8, ZooKeeperError, type Client } from '@zabra/client/core'
import { AtomicValue, Counter } from '../../atomic-value/index.ts'
import { Group, type GroupChange } from '../../group/index.ts'
import { TreeCache, type CacheEvent } from '../../tree-cache/index.ts'
import { AmbiguousResultError } from '../../support/ambiguous-result.ts'
import { delay } from '../../support/delay.ts'
import { expectEqual, type Scenario } from './context.ts'

const text = (data: Uint8Array): string => new TextDecoder().decode(data)

async function contents(on: Client): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  if ((await on.exists('/t')) === undefined) return found
  for await (const path of on.walk('/t')) found.set(path, text((await on.getData(path)).data))
  return found
}

export const values: Readonly<Record<string, Scenario>> = {
  'atomic value and counter': async ({ prng, clients, observer, waitUntilHealed }) => {
    let [confirmed, ambiguous, words] = [0n, 0n, 0]
    const many = async (client: Client): Promise<void> => {
      for (let n = 0; n < 5; n++) {
        await delay(client, prng.between(0, 3000))
        try {
          await new Counter(client, '/n').add()
          confirmed++
        } catch (error) {
          if (!(error instanceof AmbiguousResultError)) throw error
          ambiguous++
        }
      }
      const value = new AtomicValue(client, '/v', { codec: utf8, initial: '' })
      try {
        await value.update((old) => `${old}x`)
        words++
      } catch (error) {
        if (!(error instanceof AmbiguousResultError)) throw error
        ambiguous++
      }
    }
    await Promise.all(clients.map(many))
    await waitUntilHealed()
    const sum = await new Counter(observer, '/n').get()
    if (sum < confirmed || sum > confirmed + ambiguous)
      throw new Error(`counted ${sum}, not ${confirmed} to ${confirmed + ambiguous}`)
    const { length } = text((await observer.getData('/v')).data)
    if (length < words || length > words + Number(ambiguous))
      throw new Error(`wrote ${length} words, not ${words}`)
  },
  'tree cache': async ({ prng, clients, observer, waitUntilHealed }) => {
    const caches = clients.slice(0, 4).map((client) => new TreeCache(client, '/t', { codec: utf8 }))
    const messages = caches.map(() => new Map<string, string>())
    const listening = caches.map(async (cache, i) => {
      for await (const event of cache.events() as AsyncIterable<CacheEvent<string>>) {
        if (event.type === 'removed') messages[i]!.delete(event.path)
        else if (event.type === 'added' || event.type === 'updated') messages[i]!.set(event.path, event.value)
      }
    })
    const names = ['/t', '/t/a', '/t/b', '/t/a/x', '/t/a/y', '/t/b/x']
    await Promise.all(
      clients.map(async (client, c) => {
        for (let step = 0; step < 15; step++) {
          await delay(client, prng.between(0, 2500))
          const path = prng.pick(names)
          const data = utf8.encode(`${c}-${step}`)
          const kind = prng.pick(['create', 'set', 'delete', 'again'] as const)
          try {
            if (kind === 'create') await client.create(path, { data })
            else if (kind === 'set') await client.setData(path, data)
            else if (kind === 'delete') await client.delete(path)
            else {
              await client.delete(path)
              await client.create(path, { data })
            }
          } catch (error) {
            if (!(error instanceof ZooKeeperError)) throw error
          }
        }
      }),
    )
    await waitUntilHealed()
    await observer.sync('/')
    const truth = await contents(observer)
    for (const [i, cache] of caches.entries()) {
      const cached = new Map([...cache.entries()].map(([path, { value }]) => [path, value]))
      expectEqual(`contents of cache ${i}`, cached, truth)
      expectEqual(`events of cache ${i}`, messages[i], truth)
    }
    await Promise.all(caches.map((cache) => cache.close()))
    await Promise.all(listening)
  },
  group: async ({ prng, clients, names, waitUntilHealed, sleep }) => {
    const groupOf = (client: Client): Group<string> => new Group(client, '/g', { codec: utf8 })
    const stop = new AbortController()
    const last: (GroupChange<string> | undefined)[] = clients.map(() => undefined)
    const watching = clients.map(async (client, i) => {
      for await (const change of groupOf(client).changes({ signal: stop.signal })) {
        const gone = [...(last[i]?.members.keys() ?? [])].filter((name) => !change.members.has(name))
        expectEqual(`members that left, as reported to ${names[i]}`, change.left.toSorted(), gone.toSorted())
        last[i] = change
      }
    })
    for (const each of watching) each.catch(() => {})
    const staying: string[] = []
    const members = clients.map(async (client, i) => {
      for (let round = 0; round < 3; round++) {
        await delay(client, prng.between(0, 3000))
        // The server may still keep the member's session that its client has given up.
        const me = await groupOf(client).join(names[i]!, String(round), { onConflict: 'wait' })
        await delay(client, prng.between(0, 3000))
        if (round === 2 && prng.chance(50)) {
          staying.push(names[i]!)
          return me
        }
        await me.release()
      }
      return undefined
    })
    const stayed = await Promise.all(members)
    await waitUntilHealed()
    for (const [i, change] of last.entries())
      expectEqual(
        `members as seen by ${names[i]}`,
        [...(change?.members.keys() ?? [])].toSorted(),
        staying.toSorted(),
      )
    for (const me of stayed) await me?.release()
    await sleep(5000)
    stop.abort()
    for (const { status, reason } of (await Promise.allSettled(watching)) as PromiseRejectedResult[])
      if (status === 'rejected' && (reason as Error).name !== 'AbortError') throw reason
  },
}
