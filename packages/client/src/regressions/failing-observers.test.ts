import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Instrumentation } from '../instrumentation.ts'
import { withDiagnostics } from '../node/diagnostics.ts'
import { setupEachTest, world } from '../testing/setup.ts'

// A rejection that no code handles ends the process of the user.

setupEachTest()

const unhandled: unknown[] = []
const note = (reason: unknown): void => void unhandled.push(reason)

beforeEach(() => {
  unhandled.length = 0
  process.on('unhandledRejection', note)
})
afterEach(() => void process.off('unhandledRejection', note))

/** Lets rejections that no code handles be reported. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const called: string[] = []
const fail = async (hook: string): Promise<never> => {
  called.push(hook)
  throw new Error('the hook of the test')
}
const failing = {
  request: () => fail('request'),
  state: () => fail('state'),
  attempt: () => fail('attempt'),
  event: () => fail('event'),
} as unknown as Instrumentation
const failingAtEnd: Instrumentation = { request: () => () => fail('end') }

it.each<[string, Instrumentation]>([
  ['of the instrumentation', failing],
  ['of the instrumentation at the end of a request', failingAtEnd],
  ['of the instrumentation beside diagnostics channels', withDiagnostics(failing)],
])('the rejection of a hook %s is ignored', async (_name, instrumentation) => {
  called.length = 0
  const onAttemptFailed = (() => fail('onAttemptFailed')) as never
  const client = await world.client({ instrumentation, onAttemptFailed })
  await world.outcome(client.watchOnce('/a', 'exists'))
  await world.outcome(client.create('/a'))
  const accept = world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(1000)
  accept()
  await world.advance(12_000)
  expect(client.state).toBe('connected')
  await turn()
  const hooks = instrumentation === failingAtEnd ? ['end'] : ['request', 'state', 'attempt', 'event']
  expect([...new Set(called)].toSorted()).toEqual([...hooks, 'onAttemptFailed'].toSorted())
  expect(unhandled).toEqual([])
})
