import { json, utf8, ZooKeeperError } from '@zabra/client/core'
import { Configuration } from '../../configuration/index.ts'
import { NameService } from '../../name-service/index.ts'
import { PersistentNode } from '../../persistent-node/index.ts'
import { ServiceDiscovery } from '../../service-discovery/index.ts'
import { expectEqual, type Scenario } from './context.ts'

const text = (data: Uint8Array): string => new TextDecoder().decode(data)

export const registrations: Readonly<Record<string, Scenario>> = {
  'persistent nodes exist with the newest data in the end': async (context) => {
    const { prng, clients, observer, sleep, waitUntilHealed } = context
    const nodes = clients.map((client, i) => new PersistentNode(client, `/p/n${i}`, utf8.encode('first')))
    for (let step = 0; step < 25; step++) {
      const i = prng.between(0, nodes.length)
      if (prng.chance(50)) void nodes[i]!.setData(utf8.encode(String(step))).catch(() => {})
      else void observer.delete(`/p/n${i}`, { missingOk: true }).catch(() => {})
      await sleep(prng.between(0, 1500))
    }
    const last = nodes.map((_, i) => `last ${i}`)
    const written = nodes.map((node, i) => node.setData(utf8.encode(last[i]!)))
    await waitUntilHealed()
    await Promise.all(written)
    await observer.sync('/p')
    for (const [i, data] of last.entries())
      expectEqual(`the data of node ${i}`, text((await observer.getData(`/p/n${i}`)).data), data)
    await Promise.all(nodes.map((node) => node.close()))
    await observer.sync('/p')
    // The directory is a container, which is removed when empty.
    const { numChildren = 0 } = (await observer.exists('/p')) ?? {}
    expectEqual('nodes that are left', numChildren, 0)
  },
  'services have exactly the registered instances in the end, with their newest data': async (context) => {
    const { prng, clients, observer, sleep, waitUntilHealed } = context
    const watching = new ServiceDiscovery(clients[0]!, '/services')
    const provider = await watching.provider('api')
    const expected = new Map<string, number>()
    const members = clients.map(async (client, i) => {
      const discovery = new ServiceDiscovery(client, '/services')
      for (let life = 0; life < 4; life++) {
        const id = `${i}-${life}`
        const me = await discovery.register({ name: 'api', id, port: 0 })
        await sleep(prng.between(0, 4000))
        await me.update({ port: life + 1 })
        if (prng.chance(70)) await me.release()
        else expected.set(id, life + 1)
      }
      return discovery
    })
    const discoveries = await Promise.all(members)
    await waitUntilHealed()
    const ports = (instances: readonly { id: string; port?: number | undefined }[]): unknown =>
      new Map(instances.map(({ id, port }) => [id, port]))
    await observer.sync('/services')
    expectEqual(
      'instances',
      ports(await new ServiceDiscovery(observer, '/services').instances('api')),
      expected,
    )
    expectEqual('instances of the provider', ports(provider.all()), expected)
    const seen = Array.from({ length: expected.size }, () => provider.next()!.id)
    expectEqual('instances that were chosen', new Set(seen), new Set(expected.keys()))
    await Promise.all([watching.close(), ...discoveries.map((each) => each.close())])
  },
  'names have one owner at a time, and move atomically': async (context) => {
    const { prng, clients, observer, sleep, waitUntilHealed } = context
    const owners = new Map<string, string>()
    const taking = clients.map(async (client, i) => {
      const names = new NameService(client, '/names', utf8)
      for (let round = 0; round < 4; round++) {
        await sleep(prng.between(0, 3000))
        const name = `n${prng.between(0, 3)}`
        try {
          const mine = await names.register(name, `${i}`)
          const before = owners.get(name)
          if (before !== undefined) throw new Error(`${i} got ${name} beside ${before}`)
          owners.set(name, `${i}`)
          await sleep(prng.between(0, 3000))
          const found = await names.resolve(name, { fresh: true })
          if (found !== `${i}`) throw new Error(`${i} found ${found} under its own ${name}`)
          owners.delete(name)
          if (prng.chance(30)) await names.rename(name, `moved-${i}-${round}`)
          await mine.release()
        } catch (error) {
          if (!(error instanceof ZooKeeperError)) throw error
        }
      }
    })
    await Promise.all(taking)
    await waitUntilHealed()
    // The remaining names belong to callers whose registration had an unknown outcome.
    const names = new NameService(observer, '/names', utf8)
    await observer.create('/names/from', { data: utf8.encode('moved') })
    await names.rename('from', 'to')
    expectEqual(
      'a name that moved',
      [await names.resolve('from'), await names.resolve('to')],
      [undefined, 'moved'],
    )
    expectEqual(
      'names that are taken',
      (await names.names()).filter((name) => owners.has(name)),
      [],
    )
    for (const name of (await names.names()).filter((each) => each.startsWith('moved-')))
      expectEqual(`what moved to ${name}`, await names.resolve(name), name.split('-')[1])
  },
  'configurations deliver the newest value to every reader, and apply every change once': async (context) => {
    const { prng, clients, sleep, waitUntilHealed } = context
    const codec = json<number>()
    const stop = new AbortController()
    const seen: number[][] = clients.map(() => [])
    const following = clients.map(async (client, i) => {
      const config = new Configuration(client, '/c', { codec, defaults: 0 })
      for await (const { value } of config.updates({ signal: stop.signal })) seen[i]!.push(value)
    })
    for (const each of following) each.catch(() => {})
    let [confirmed, ambiguous] = [0, 0]
    const changing = clients.map(async (client) => {
      for (let round = 0; round < 15; round++) {
        await sleep(prng.between(0, 1500))
        try {
          await new Configuration(client, '/c', { codec, defaults: 0 }).update((value) => value + 1)
          confirmed++
        } catch (error) {
          if (!(error instanceof ZooKeeperError && error.maybeApplied)) throw error
          ambiguous++
        }
      }
    })
    await Promise.all(changing)
    await waitUntilHealed()
    const { value } = await new Configuration(clients[0]!, '/c', { codec }).get()
    if (value < confirmed || value > confirmed + ambiguous)
      throw new Error(`counted ${value}, not ${confirmed} to ${confirmed + ambiguous}`)
    for (const values of seen) {
      expectEqual('the newest value', values.at(-1), value)
      expectEqual(
        'order of the values',
        values,
        values.toSorted((a, b) => a - b),
      )
    }
    stop.abort()
    await Promise.allSettled(following)
  },
}
