import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonFields } from './audit-event.ts'
import { JsonLines } from './json-lines.ts'

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const origin = { ip: '10.0.0.1', port: 4711, tls: { version: 'TLSv1.3', cipher: 'X', subject: 'CN="a"' } }

const clients = [
  {},
  { session: -1n, users: ['bob', '"result":"success"'], ip: '10.0.0.1', origin, via: 'zk' },
  { session: 7n, users: [], ip: '::1', origin: { ip: '::1', port: 1 }, via: 'zk' },
] as const

const changes = fc.record({
  operation: fc.constantFrom('create', 'setData', 'delete'),
  path: fc.string({ unit: 'binary' }).map((name) => `/${name}`),
  mode: optional(fc.constantFrom('persistent', 'ephemeral_sequential')),
  version: optional(fc.integer()),
  versionBefore: optional(fc.integer()),
  bytes: optional(fc.nat()),
  xid: optional(fc.integer()),
  zxid: fc.nat(2 ** 50),
})

it('formats the lines that an object of the fields has, for any clients and changes', () => {
  const lines = new JsonLines(3)
  fc.assert(
    fc.property(fc.constantFrom(...clients), changes, fc.nat(), fc.nat(3), (client, change, id, time) => {
      const event = { ...client, ...change, category: 'writes', result: 'success' } as const
      const expected = JSON.stringify(jsonFields(event, { time, id, serverId: 3 }))
      expect(lines.format(client, change, id, time)).toBe(expected)
    }),
  )
})
