import type { Meter, Span, Tracer } from '@opentelemetry/api'
import { expect, it } from 'vitest'
import { openTelemetry } from './otel.ts'
import { setupEachTest, world } from './testing/setup.ts'
import { bytes } from './testing/manual-world.ts'

setupEachTest()

/** A provider that records spans and measurements. */
function recorder(): { tracer: Tracer; meter: Meter; lines: string[] } {
  const lines: string[] = []
  const span = (name: string): Span =>
    ({
      setAttribute: (key: string, value: unknown) => void lines.push(`${name} ${key}=${String(value)}`),
      setStatus: ({ code }: { code: number }) => void lines.push(`${name} status ${code}`),
      end: () => void lines.push(`${name} ended`),
    }) as unknown as Span
  const tracer = {
    startSpan(name: string, { attributes = {} }: { attributes?: object }) {
      lines.push(`${name} ${JSON.stringify(attributes)}`)
      return span(name)
    },
  } as unknown as Tracer
  const instrument = (name: string) => ({
    add: (value: number, attributes?: object) =>
      void lines.push(`${name} ${value} ${JSON.stringify(attributes)}`),
    record: (_value: number, attributes?: object) => void lines.push(`${name} ${JSON.stringify(attributes)}`),
  })
  const meter = {
    createHistogram: instrument,
    createCounter: instrument,
    createUpDownCounter: instrument,
  } as unknown as Meter
  return { tracer, meter, lines }
}

it('each request makes one span and one measurement', async () => {
  const { tracer, meter, lines } = recorder()
  const client = await world.client({ instrumentation: openTelemetry({ tracer, meter }) })
  lines.length = 0
  await world.outcome(client.create('/a', { data: bytes('secret') }))
  await world.outcome(client.delete('/none')).catch(() => {})
  expect(lines.filter((line) => line.startsWith('zookeeper create'))).toEqual([
    'zookeeper create {"db.system.name":"zookeeper","db.operation.name":"create","zookeeper.path":"/a","server.address":"a","server.port":2181}',
    expect.stringMatching(/^zookeeper create zookeeper\.zxid=0x[0-9a-f]+$/),
    'zookeeper create ended',
  ])
  expect(lines).toContain('zookeeper delete error.type=NO_NODE')
  expect(lines).toContain('zookeeper delete status 2')
  expect(lines).toContain(
    'db.client.operation.duration {"db.system.name":"zookeeper","db.operation.name":"delete","error.type":"NO_NODE"}',
  )
  expect(lines.join()).not.toContain('secret')
})

it('withoutPaths leaves paths out of spans', async () => {
  const { tracer, meter, lines } = recorder()
  const client = await world.client({ instrumentation: openTelemetry({ tracer, meter, withoutPaths: true }) })
  await world.outcome(client.delete('/customer-7')).catch(() => {})
  expect(lines.join()).not.toContain('customer-7')
})

it('the hooks work with the global providers, which do nothing by default', async () => {
  const client = await world.client({ instrumentation: openTelemetry() })
  await world.outcome(client.create('/a'))
})

it.each([
  ['tls://[fe80::1%eth0]:2281', { 'server.address': 'fe80::1%eth0', 'server.port': 2281 }],
  ['wss://zk.example.com/zabra', { 'server.address': 'zk.example.com', 'server.port': 443 }],
  ['ws://zk.example.com:8080/a:1', { 'server.address': 'zk.example.com', 'server.port': 8080 }],
])('a failed attempt at %s is counted with its host and its port', (server, attributes) => {
  const { tracer, meter, lines } = recorder()
  openTelemetry({ tracer, meter }).attempt?.({ server, error: new Error('refused') })
  expect(lines).toEqual([`zookeeper.client.attempts.failed 1 ${JSON.stringify(attributes)}`])
})
