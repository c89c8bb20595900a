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
    'zookeeper create {"db.system.name":"zookeeper","db.operation.name":"create","zookeeper.path":"/a","server.address":"tcp://a:2181"}',
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
