import { OpCode } from '@zabra/protocol'
import { holdWrites } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

it.each([
  { role: 'follower', id: 1 },
  { role: 'leader', id: 3 },
  { role: 'observer', id: 4 },
])('a $role that stops answers the requests that it has received, and takes no later one', async ({ id }) => {
  const ensemble = await Ensemble.start(4, { observers: [4] })
  const [client, watcher] = [await ensemble.client(id), await ensemble.client(id)]
  watcher.read(1, OpCode.exists, '/second', true)
  expect(await ensemble.receive(watcher, 1)).toEqual(['1:-101'])
  client.batch(() => {
    client.create(1, '/first')
    client.sync(2)
    client.create(3, '/second')
    client.read(4, OpCode.exists, '/second')
  })
  // The server has received them when it is asked to stop.
  ensemble.clock.advance(0)
  const stopping = ensemble.member(id).stop()
  client.create(5, '/late')
  await ensemble.until('the end of the connections', () => client.closed && watcher.closed, 2000)
  expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0', '4:0'])
  expect(watcher.takeReceived()).toEqual(['event 1 /second'])
  await stopping
  await ensemble.until('a leader', () => ensemble.leader !== undefined)
  expect(await ensemble.read(2, '/second', '/late')).toEqual(['1:0', '2:-101'])
})

it.each([1, 3])('member %i stops in time when its writes cannot be committed', async (id) => {
  const ensemble = await Ensemble.start(3)
  const client = await ensemble.client(id)
  for (const other of [1, 2, 3]) if (other !== id) holdWrites(ensemble.member(other).disk)
  client.create(1, '/a')
  await ensemble.untilIdle()
  let isStopped = false
  const stopping = ensemble
    .member(id)
    .stop()
    .then(() => (isStopped = true))
  await ensemble.until('the stop', () => isStopped, 12_000)
  expect([client.closed, client.takeReceived()]).toEqual([true, []])
  await stopping
})

it('a member that stops while it loads its data again says so, and not that its disk hangs', async () => {
  const ensemble = await Ensemble.start(3)
  const { disk } = ensemble.member(1)
  disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
  // A load takes as long as the data are large.
  disk.openRead = () => new Promise(() => {})
  const client = await ensemble.client(2)
  client.create(1, '/a')
  await ensemble.until('a load', () =>
    ensemble.lines.some((line) => / 1 info Loading the data again/.test(line)),
  )
  await ensemble.member(1).stop()
  const said = ensemble.lines.filter((line) => / 1 (?:warn|error) The server stops/.test(line))
  expect(said).toEqual([expect.stringContaining('The server stops while it loads its data again')])
})

it('a leader whose disk fails while it hands leadership over stops', async () => {
  const ensemble = await Ensemble.start(3)
  const client = await ensemble.client(1)
  const releases = [1, 2, 3].map((id) => holdWrites(ensemble.member(id).disk))
  client.create(1, '/a')
  await ensemble.untilIdle()
  const member = ensemble.member(3)
  const failure = member.server!.failed
  let isClosed = false
  const closed = member.server!.close().then(() => (isClosed = true))
  await ensemble.advance(1000)
  expect([isClosed, ensemble.server(3).role]).toEqual([false, 'leading'])
  member.disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
  for (const release of releases) release()
  await ensemble.until('the end of the stop', () => isClosed)
  await closed
  expect(String(await failure)).toContain('EIO')
})

it.each(['before its stop', 'while it answers requests'])(
  'a leader whose disk fails %s stops',
  async (when) => {
    const ensemble = await Ensemble.start(3)
    const client = await ensemble.client(3)
    const member = ensemble.member(3)
    const server = member.server!
    const release = holdWrites(member.disk)
    for (const id of [1, 2]) holdWrites(ensemble.member(id).disk)
    client.create(1, '/a')
    await ensemble.untilIdle()
    let isClosed = false
    const close = (): void => void server.close().then(() => (isClosed = true))
    if (when !== 'before its stop') close()
    await ensemble.untilIdle()
    member.disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    release()
    await ensemble.until('the failure', () => member.failure !== undefined)
    if (when === 'before its stop') close()
    await ensemble.until('the end of the stop', () => isClosed)
    expect(String(member.failure)).toContain('EIO')
  },
)

it('a stop in which the last write to the log fails says so', async () => {
  const ensemble = await Ensemble.start(3)
  const { disk, server } = ensemble.member(1)
  const release = holdWrites(disk)
  expect(await ensemble.create(await ensemble.client(3), '/a')).toBe('1:0')
  const closed = server!.close()
  await ensemble.advance(1000)
  disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
  release()
  await closed
  expect(String(await server!.failed)).toContain('EIO')
  expect(ensemble.lines.some((line) => line.includes(' 1 info Stopped'))).toBe(false)
})
