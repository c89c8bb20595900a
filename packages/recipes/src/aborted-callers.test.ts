import { json, utf8, ZooKeeperError } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Configuration } from './configuration/index.ts'
import { Group } from './group/index.ts'
import { NameService } from './name-service/index.ts'
import { PersistentNode } from './persistent-node/index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { enumerateFaults, tree, type FaultScenario } from './testing/fault-fixture.ts'
import { bytes } from './testing/world.ts'
import { settledChildren, TreeCache, watchChildren, watchData } from './tree-cache/index.ts'

/** The only outcomes that an aborted caller may get. */
async function orLeft(signal: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!signal.aborted || !(error instanceof ZooKeeperError)) throw error
  }
}

/** Runs `leave` as soon as a signal aborts; the result waits until that is done. */
function whenLeft(signal: AbortSignal, leave: () => Promise<void>): () => Promise<void> {
  let left: Promise<void> | undefined
  const go = (): Promise<void> => (left ??= leave())
  signal.addEventListener('abort', () => void go().catch(() => {}))
  return go
}

async function drain(loop: AsyncIterable<unknown>): Promise<void> {
  for await (const _item of loop);
}

const scenarios: Record<string, FaultScenario> = {
  'tree cache': async (fixture, { client, abort: { signal } }) => {
    const writer = await fixture.world.client()
    await writer.create('/t/a', { data: bytes('1'), parents: true })
    const cache = new TreeCache(client, '/t')
    const close = whenLeft(signal, () => cache.close())
    const events = drain(cache.events({ signal }))
    await orLeft(signal, () => cache.ready)
    await writer.setData('/t/a', bytes('2'))
    await fixture.waitUntilQuiet()
    await close()
    await events
  },
  'watchers of one znode': async (fixture, { client, abort }) => {
    const { signal } = abort
    const writer = await fixture.world.client()
    await writer.create('/t/a', { data: bytes('1'), parents: true })
    const loops = [
      orLeft(signal, () => drain(watchData(client, '/t', { signal }))),
      orLeft(signal, () => drain(watchChildren(client, '/t', { signal }))),
      orLeft(signal, () => settledChildren(client, '/t', 50, { signal })),
    ]
    await writer.setData('/t', bytes('2'))
    await writer.create('/t/b')
    await fixture.waitUntilQuiet()
    abort.abort()
    await Promise.all(loops)
  },
  group: async (fixture, { client, abort: { signal } }) => {
    const observer = await fixture.world.client()
    const group = new Group<string>(client, '/g', { codec: utf8 })
    const leave = whenLeft(signal, () => group[Symbol.asyncDispose]())
    const changes = orLeft(signal, () => drain(group.changes({ signal })))
    await orLeft(signal, async () => (await group.join('a', '1')).update('2'))
    await fixture.waitUntilQuiet()
    await leave()
    await changes
    expect((await tree(observer)).filter((path) => path.startsWith('/g/'))).toEqual([])
  },
  'persistent node': async (fixture, { client, abort: { signal } }) => {
    const observer = await fixture.world.client()
    const node = new PersistentNode(client, '/p/n', bytes('1'))
    const close = whenLeft(signal, () => node.close())
    await orLeft(signal, () => node.ready)
    await orLeft(signal, () => node.setData(bytes('2')))
    await observer.delete('/p/n', { missingOk: true })
    await fixture.waitUntilQuiet()
    await close()
    expect(await observer.exists('/p/n')).toBeUndefined()
  },
  'name service': async (fixture, { client, abort: { signal } }) => {
    const observer = await fixture.world.client()
    const names = new NameService(client, '/names', utf8)
    for (const ephemeral of [false, true]) {
      const mine = await names.register(`n${ephemeral}`, '1', { ephemeral })
      const leave = whenLeft(signal, () => mine.release())
      await orLeft(signal, () => mine.update('2'))
      await orLeft(signal, () => names.resolve(`n${ephemeral}`, { signal }))
      await leave()
    }
    await fixture.waitUntilQuiet()
    expect(await new NameService(observer, '/names', utf8).names()).toEqual([])
    expect((await tree(observer)).filter((path) => path.startsWith('/names-marks/'))).toEqual([])
  },
  configuration: async (fixture, { client, abort }) => {
    const { signal } = abort
    const writer = await fixture.world.client()
    const config = new Configuration<number>(client, '/c', { codec: json<number>(), defaults: 1 })
    const following = orLeft(signal, () => drain(config.updates({ signal })))
    await orLeft(signal, () => config.update((value) => value + 1, { signal }))
    await new Configuration<number>(writer, '/c', { codec: json<number>() }).set(5)
    await fixture.waitUntilQuiet()
    abort.abort()
    await following
    expect((await tree(writer)).filter((path) => /\/(op-|line\/)/.test(path))).toEqual([])
  },
  'service discovery': async (fixture, { client, abort: { signal } }) => {
    const observer = await fixture.world.client()
    const discovery = new ServiceDiscovery(client, '/services')
    const close = whenLeft(signal, () => discovery.close())
    await orLeft(signal, async () => (await discovery.register({ name: 'api', id: 'a' })).update({ port: 2 }))
    await orLeft(signal, () => (signal.aborted ? Promise.resolve() : discovery.provider('api')))
    await fixture.waitUntilQuiet()
    await close()
    await fixture.waitUntilQuiet()
    expect((await tree(observer)).filter((path) => path.startsWith('/services/api/'))).toEqual([])
  },
}

it.each(Object.entries(scenarios))(
  'a caller that aborts at any request leaves nothing behind: %s',
  async (_name, scenario) => {
    expect(await enumerateFaults(scenario, ['caller aborted'], { everywhere: true })).toBeGreaterThan(2)
  },
)
