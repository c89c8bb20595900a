import { UnhandledRejections } from '@zabra/testkit'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Instrumentation } from '../instrumentation.ts'
import { withDiagnostics } from '../node/diagnostics.ts'
import { setupEachTest, world } from '../testing/setup.ts'

// A rejection that no code handles ends the process of the user.

setupEachTest()

const unhandled = new UnhandledRejections()
beforeEach(unhandled.begin)
afterEach(unhandled.end)

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
  const hooks = instrumentation === failingAtEnd ? ['end'] : ['request', 'state', 'attempt', 'event']
  expect([...new Set(called)].toSorted()).toEqual([...hooks, 'onAttemptFailed'].toSorted())
  expect(await unhandled.reasons()).toEqual([])
})
