import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest()

it('trackEnsemble survives an error that does not end the session', async () => {
  const admin = await world.client()
  await world.outcome(admin.addAuth('digest', bytes('super:secret')))
  const set = (port: string): Promise<unknown> =>
    world.outcome(
      admin.setData(
        '/zookeeper/config',
        bytes(`server.1=${port}:2888:3888:participant;0.0.0.0:2181\nversion=1`),
      ),
    )
  await set('a')
  const client = await world.client({ trackEnsemble: true, retry: { maxAttempts: 1 } })
  await world.settle()
  // The next read of the configuration fails once: its connection breaks.
  const connection = world.connections[1]!
  world.faults.toClient = (chunk, from) => {
    if (from === connection && new DataView(chunk.buffer, chunk.byteOffset).getInt32(4) > 0) {
      from.cut()
      return undefined
    }
    return chunk
  }
  await set('b')
  await world.advance(5000)
  delete world.faults.toClient
  expect(client.state).toBe('connected')
  const hosts: string[] = []
  world.faults.open = ({ host }) => void hosts.push(host)
  await set('c')
  await world.advance(20_000)
  expect(world.lastConnection.server.host).toBe('c')
})

it('trackEnsemble waits for the next change when a configuration names no valid address', async () => {
  const admin = await world.client()
  await world.outcome(admin.addAuth('digest', bytes('super:secret')))
  const set = (client: string): Promise<unknown> =>
    world.outcome(
      admin.setData('/zookeeper/config', bytes(`server.1=a:2888:3888:participant;${client}\nversion=1`)),
    )
  await set('0.0.0.0:0')
  const client = await world.client({ trackEnsemble: true })
  await world.settle()
  const { sent } = client.stats()
  await world.advance(20_000)
  expect(client.stats().sent).toBe(sent)
  await set('b:2181')
  await world.advance(20_000)
  expect(world.lastConnection.server.host).toBe('b')
})

it('trackEnsemble is rejected for tls:// servers, since the configuration names only tcp addresses', async () => {
  await expect(world.connect({ servers: 'tls://a:2181', trackEnsemble: true })).rejects.toMatchObject({
    code: 'USAGE',
  })
})
