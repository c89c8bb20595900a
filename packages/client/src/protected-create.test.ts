import { expect, it } from 'vitest'
import { SessionExpiredError } from './errors.ts'
import { client, setupEachTest, other, world } from './testing/setup.ts'

setupEachTest({}, {})

const children = async (): Promise<string[]> =>
  (await world.outcome(other.getChildren('/'))).children.filter((name) => name !== 'zookeeper')

it('the protection prefix can be written in the format of another client', async () => {
  const { path } = await world.outcome(
    client.create('/__lock__', {
      mode: 'ephemeralSequential',
      protected: (uuid) => uuid.replaceAll('-', ''),
    }),
  )
  expect(path).toMatch(/^\/[0-9a-f]{32}__lock__\d{10}$/)
})

it('a create with a custom protection prefix finds its znode after a lost reply', async () => {
  world.loseReply()
  const created = client.create('/x-', {
    mode: 'ephemeralSequential',
    protected: (uuid) => `${uuid}-`,
  })
  const { path } = await world.within(5000, created)
  expect(await children()).toEqual([path.slice(1)])
})

it('a protected create that is aborted after its session was renewed leaves no znode behind', async () => {
  world.refuseConnections()
  world.connections[0]!.cut()
  await world.advance(17_000)
  const stop = new AbortController()
  const created = client.create('/x-', { mode: 'ephemeralSequential', signal: stop.signal })
  const failed = expect(created).rejects.toThrow('aborted')
  delete world.faults.open
  world.faults.toServer = (chunk, connection) => {
    // The create is sent in the new session, and its reply never arrives.
    if (connection === world.connections[0] || !new TextDecoder().decode(chunk).includes('/_c_')) return chunk
    delete world.faults.toServer
    world.loseReply()
    stop.abort()
    return chunk
  }
  await world.advance(30_000)
  await failed
  expect(await children()).toEqual([])
})

it('orphan removal is not rejected by a full offline queue while there is no connection', async () => {
  const strict = await world.client({ offlineQueue: 0 })
  const { path } = await world.outcome(strict.create('/x', { mode: 'ephemeral' }))
  world.lastConnection.cut()
  await world.settle()
  await expect(strict.exists(path)).rejects.toThrow('there is no connection')
  await world.within(5000, strict.delete(path, { guaranteed: true }))
  expect(await children()).toEqual([])
})

it('a protected create whose session has expired is not retried with the same prefix', async () => {
  world.loseReply()
  const created = client.create('/x-', { mode: 'ephemeralSequential' })
  const failed = expect(created).rejects.toThrow(SessionExpiredError)
  world.refuseConnections()
  await world.advance(17_000)
  delete world.faults.open
  await world.advance(5000)
  await failed
  expect(await children()).toEqual([])
})

it('a protected create with parents makes a missing parent also when the first try was lost', async () => {
  world.loseRequest()
  const created = client.create('/dir/x-', { mode: 'ephemeralSequential', parents: true })
  expect((await world.within(10_000, created)).path).toMatch(/^\/dir\/_c_/)
})

it.each([() => '', () => 'task-', (() => undefined) as never])(
  'a prefix without the UUID is refused: another znode could be taken for the one whose reply was lost',
  async (prefix) => {
    await world.outcome(client.create('/q'))
    await world.outcome(client.create('/q/task-other'))
    world.loseReply()
    const create = client.create('/q/n-', { mode: 'persistentSequential', protected: prefix })
    await expect(world.within(5000, create)).rejects.toMatchObject({
      code: 'USAGE',
      path: '/q/n-',
      message: expect.stringContaining('UUID'),
    })
    delete world.faults.toClient
    expect((await world.within(5000, client.getChildren('/q'))).children).toEqual(['task-other'])
  },
)
