import { json, utf8, ZooKeeperError, type Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Configuration } from './configuration/index.ts'
import { NameService } from './name-service/index.ts'
import { PersistentNode } from './persistent-node/index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { Chaos, Dice } from './testdata/chaos.ts'
import { idle, leftovers, pass } from './testdata/faults.ts'
import { seedsOf, withSeeds } from './testdata/stage.ts'
import { text, World } from './testdata/world.ts'

/** Clients that suffer, one that does not, and what is to be so at the end. */
interface Troupe {
  readonly dice: Dice
  readonly clients: readonly Client[]
  readonly witness: Client
  readonly sleep: (ms: number) => Promise<void>
  /** Waits until the network is well, and everybody has noticed. */
  readonly calm: () => Promise<void>
}

/** Plays with clients that are cut, silenced and expired at random; nothing may be left behind. */
async function suffer(seed: number, play: (troupe: Troupe) => Promise<void>): Promise<void> {
  const dice = new Dice(seed)
  const world = await World.start()
  const hosts = Array.from({ length: dice.between(2, 6) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const witness = await world.client()
  const chaos = new Chaos(world, dice, hosts)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const calm = async (): Promise<void> => {
    chaos.stop()
    await sleep(45_000)
  }
  world.clock.after(30_000, 'end of the chaos', () => chaos.stop())
  await pass(world, 400_000, play({ dice, clients, witness, sleep, calm }))
  await idle(world, 1000)
  expect(await pass(world, 10_000, leftovers(world, witness, clients))).toEqual([])
  await world.end()
}

const scenarios: Record<string, (troupe: Troupe) => Promise<void>> = {
  'persistent nodes are there with the newest data in the end': async (troupe) => {
    const { dice, clients, witness, sleep, calm } = troupe
    const nodes = clients.map((client, i) => new PersistentNode(client, `/p/n${i}`, utf8.encode('first')))
    for (let step = 0; step < 25; step++) {
      const i = dice.between(0, nodes.length)
      if (dice.chance(50)) void nodes[i]!.setData(utf8.encode(String(step))).catch(() => {})
      else await witness.delete(`/p/n${i}`, { missingOk: true })
      await sleep(dice.between(0, 1500))
    }
    const last = nodes.map((_, i) => `last ${i}`)
    const written = nodes.map((node, i) => node.setData(utf8.encode(last[i]!)))
    await calm()
    await Promise.all(written)
    for (const [i, data] of last.entries()) expect(text((await witness.getData(`/p/n${i}`)).data)).toBe(data)
    await Promise.all(nodes.map((node) => node.close()))
    expect((await witness.getChildren('/p')).children).toEqual([])
  },
  'services have those instances in the end that are registered, with their newest data': async (troupe) => {
    const { dice, clients, witness, sleep, calm } = troupe
    const watching = new ServiceDiscovery(clients[0]!, '/services')
    const provider = await watching.provider('api')
    const expected = new Map<string, number>()
    const members = clients.map(async (client, i) => {
      const discovery = new ServiceDiscovery(client, '/services')
      for (let life = 0; life < 4; life++) {
        const id = `${i}-${life}`
        const me = await discovery.register({ name: 'api', id, port: 0 })
        await sleep(dice.between(0, 4000))
        await me.update({ port: life + 1 })
        if (dice.chance(70)) await me.unregister()
        else expected.set(id, life + 1)
      }
      return discovery
    })
    const discoveries = await Promise.all(members)
    await calm()
    const ports = (instances: readonly { id: string; port?: number | undefined }[]): unknown =>
      new Map(instances.map(({ id, port }) => [id, port]))
    expect(ports(await new ServiceDiscovery(witness, '/services').instances('api'))).toEqual(expected)
    expect(ports(provider.all())).toEqual(expected)
    const seen = Array.from({ length: expected.size }, () => provider.next()!.id)
    expect(new Set(seen)).toEqual(new Set(expected.keys()))
    await Promise.all([watching.close(), ...discoveries.map((each) => each.close())])
  },
  'names belong to one at a time, and move whole': async (troupe) => {
    const { dice, clients, witness, sleep, calm } = troupe
    const owners = new Map<string, string>()
    const taking = clients.map(async (client, i) => {
      const names = new NameService(client, '/names', utf8)
      for (let round = 0; round < 4; round++) {
        await sleep(dice.between(0, 3000))
        const name = `n${dice.between(0, 3)}`
        try {
          const mine = await names.register(name, `${i}`)
          const before = owners.get(name)
          if (before !== undefined) throw new Error(`${i} got ${name} beside ${before}`)
          owners.set(name, `${i}`)
          await sleep(dice.between(0, 3000))
          const found = await names.resolve(name, { fresh: true })
          if (found !== `${i}`) throw new Error(`${i} found ${found} under its own ${name}`)
          owners.delete(name)
          await mine.unregister()
        } catch (error) {
          if (!(error instanceof ZooKeeperError)) throw error
        }
      }
    })
    await Promise.all(taking)
    await calm()
    // What is left are names of callers who could not be told that they have them.
    const names = new NameService(witness, '/names', utf8)
    await witness.create('/names/from', utf8.encode('moved'))
    await names.rename('from', 'to')
    expect([await names.resolve('from'), await names.resolve('to')]).toEqual([undefined, 'moved'])
    expect((await names.names()).filter((name) => owners.has(name))).toEqual([])
  },
  'configurations show everybody the newest value, and no change is lost or made twice': async (troupe) => {
    const { dice, clients, sleep, calm } = troupe
    const codec = json<number>()
    const stop = new AbortController()
    const seen: number[][] = clients.map(() => [])
    const following = clients.map(async (client, i) => {
      const config = new Configuration(client, '/c', { codec, defaults: 0 })
      for await (const { value } of config.updates({ signal: stop.signal })) seen[i]!.push(value)
    })
    for (const each of following) each.catch(() => {})
    let [sure, doubts] = [0, 0]
    const changing = clients.map(async (client) => {
      for (let round = 0; round < 15; round++) {
        await sleep(dice.between(0, 1500))
        try {
          await new Configuration(client, '/c', { codec, defaults: 0 }).update((value) => value + 1)
          sure++
        } catch (error) {
          if (!(error instanceof ZooKeeperError && error.maybeApplied)) throw error
          doubts++
        }
      }
    })
    await Promise.all(changing)
    await calm()
    const { value } = await new Configuration(clients[0]!, '/c', { codec }).get()
    if (value < sure || value > sure + doubts)
      throw new Error(`counted ${value}, not ${sure} to ${sure + doubts}`)
    for (const values of seen) {
      expect(values.at(-1)).toBe(value)
      expect(values.toSorted((a, b) => a - b)).toEqual(values)
    }
    stop.abort()
    await Promise.allSettled(following)
  },
}

it.each(Object.entries(scenarios))(
  'random: %s',
  async (_name, play) => {
    await withSeeds(seedsOf(12), (_random, seed) => suffer(seed, play))
  },
  600_000,
)
