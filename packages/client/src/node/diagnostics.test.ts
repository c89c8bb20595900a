// oxlint-disable no-restricted-imports -- the channels are what is tested
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel'
import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'
import { withDiagnostics, type RequestContext } from './diagnostics.ts'

setupEachTest()

it('requests cost no tracing while the channels have no subscribers', () => {
  expect(withDiagnostics(undefined)).toHaveProperty('request', undefined)
})

it('subscribers see the end of a request whose hook throws', async () => {
  const received: string[] = []
  const request = tracingChannel<'', RequestContext>('zookeeper:request')
  const listeners = {
    start: () => void received.push('start'),
    end() {},
    asyncStart() {},
    asyncEnd: () => void received.push('end'),
    error() {},
  }
  const instrumentation = withDiagnostics({
    request: () => {
      throw new Error('broken')
    },
  })
  const client = await world.client({ instrumentation })
  request.subscribe(listeners as never)
  await world.outcome(client.getData('/'))
  request.unsubscribe(listeners as never)
  expect(received).toEqual(['start', 'end'])
})

it('subscribers receive requests, states and events, without data', async () => {
  const received: string[] = []
  const request = tracingChannel<'', RequestContext>('zookeeper:request')
  const listeners = {
    start: ({ operation, path }: RequestContext) => void received.push(`start ${operation} ${path}`),
    end() {},
    asyncStart() {},
    asyncEnd: ({ operation, error }: RequestContext) =>
      void received.push(`end ${operation}${error ? ` ${error.name}` : ''}`),
    error() {},
  }
  request.subscribe(listeners as never)
  const onState = (message: unknown): void => void received.push((message as { state: string }).state)
  const onEvent = (message: unknown): void => void received.push((message as { type: string }).type)
  subscribe('zookeeper:state', onState)
  subscribe('zookeeper:event', onEvent)
  const passedOn: string[] = []
  const client = await world.client({
    instrumentation: withDiagnostics({ request: ({ operation }) => void passedOn.push(operation) }),
  })
  await world.outcome(client.watchOnce('/a', 'exists'))
  await world.outcome(client.create('/a', { data: bytes('secret') }))
  await world.outcome(client.delete('/none')).catch(() => {})
  request.unsubscribe(listeners as never)
  unsubscribe('zookeeper:state', onState)
  unsubscribe('zookeeper:event', onEvent)
  expect(received).toEqual([
    'connected',
    'start exists /a',
    'end exists',
    'start create /a',
    'nodeCreated',
    'end create',
    'start delete /none',
    'end delete NoNodeError',
  ])
  expect(passedOn).toEqual(['exists', 'create', 'delete'])
})
