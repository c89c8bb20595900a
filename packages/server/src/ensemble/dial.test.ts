import { ManualClock, MemoryNetwork, type Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { dial, dialDefaults, type DialOptions } from './dial.ts'

const at = (port: number) => ({ host: '127.0.0.1', port })

function rig() {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const closed: number[] = []
  const listen = (port: number) =>
    network.listen({ port }, (wire) =>
      wire.setHandler({ data() {}, drain() {}, closed: () => void closed.push(port) }),
    )
  const options = (ports: readonly number[], more: Partial<DialOptions> = {}): DialOptions => ({
    network,
    clock,
    addresses: ports.map(at),
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    ...dialDefaults,
    ...more,
  })
  const step = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await clock.untilIdle()
  }
  return { clock, network, closed, listen, options, step }
}

it('waits a little for a leader that does not listen yet', async () => {
  const { listen, options, step } = rig()
  const wire = dial(options([1])).catch((error: unknown) => String(error))
  await step(0)
  for (let waited = 0; waited < 500; waited += 10) await step(10)
  await listen(1)
  expect(await wire).toContain('The leader cannot be reached at 127.0.0.1:1')

  const second = dial(options([2]))
  await step(0)
  for (let waited = 0; waited < 300; waited += 10) await step(10)
  await listen(2)
  await step(100)
  expect((await second).remote.port).toBe(2)
})

it('asks again soon, for a leader of the same moment listens soon', async () => {
  const { listen, options, step } = rig()
  const wire = dial(options([1]))
  await step(0)
  await step(5)
  await listen(1)
  await step(10)
  expect((await wire).remote.port).toBe(1)
})

it('races all addresses of a leader and closes the ones that lose', async () => {
  const { listen, options, step, closed } = rig()
  await listen(2)
  await listen(3)
  const wire = await dial(options([1, 2, 3]))
  expect(wire.remote.port).toBe(2)
  wire.setHandler({ data() {}, drain() {}, closed: () => void closed.push(0) })
  await step(0)
  expect(closed).toEqual([3])
})

it('gives up when its budget is spent, with whoever does not answer', async () => {
  const { options, step, network } = rig()
  const never: typeof network.connect = (_to, options) =>
    new Promise<never>((_, reject) =>
      options!.signal!.addEventListener('abort', () => reject(new Error('aborted'))),
    )
  let failed: unknown
  void dial(
    options([1], {
      timeoutMs: 250,
      network: { listen: (at, accepted) => network.listen(at, accepted), connect: never },
    }),
  ).catch((error: unknown) => (failed = error))
  await step(0)
  await step(249)
  expect(failed).toBe(undefined)
  await step(1)
  expect(String(failed)).toContain('The leader cannot be reached')
})

it('closes a connection that comes about after it was called off', async () => {
  const { options, network, listen, closed, step } = rig()
  await listen(1)
  const off = new AbortController()
  let answer!: () => void
  const slow: typeof network.connect = (to) =>
    new Promise<Connection>((resolve) => (answer = () => void network.connect(to).then(resolve))) as never
  const wire = dial(
    options([1], {
      signal: off.signal,
      network: { listen: (at, accepted) => network.listen(at, accepted), connect: slow },
    }),
  ).catch((error: unknown) => String(error))
  off.abort()
  answer()
  await step(0)
  expect(await wire).toContain('cannot be reached')
  expect(closed).toEqual([1])
})
