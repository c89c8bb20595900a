import { OpCode, Reader, Writer } from '@zabra/protocol'
import { ManualClock, silentLogger } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonFields, type AuditEvent } from './audit-event.ts'
import { AuditFile } from './audit-file.ts'
import { JsonLines } from './json-lines.ts'
import { RequestsInFlight } from './requests-in-flight.ts'

const PATH = '/data/audit.log'

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const origin = { ip: '10.0.0.1', port: 4711, tls: { version: 'TLSv1.3', cipher: 'X', subject: 'CN="a"' } }

const clients = [
  {},
  { session: -1n, users: ['bob', '"result":"success"', ',"member"'], ip: '10.0.0.1', origin, via: 'zk' },
  { session: 7n, users: ['eve'], ip: '::1', origin: { ip: '::1', port: 1 }, via: 'zk' },
  { session: 7n, users: [], ip: '::1', origin: { ip: '::1', port: 2 }, via: 'zk' },
] as const

const changes = fc.record({
  operation: fc.constantFrom('create', 'setData', 'delete'),
  mode: optional(fc.constantFrom('persistent', 'ephemeral_sequential')),
  version: optional(fc.integer()),
  versionBefore: optional(fc.integer()),
  bytes: optional(fc.nat()),
  xid: optional(fc.integer()),
  zxid: optional(fc.nat(2 ** 50)),
})
const paths = fc.oneof(
  fc.string({ unit: 'binary' }).map((name) => `/${name}`),
  fc.stringMatching(/^\/[ -~]{0,300}$/),
  fc.constant(`/${'x'.repeat(600)}`),
)
const ids = fc.nat(2 ** 52)
const times = fc.nat(3)
const SERVER_ID = 3

/** Returns the lines that a body adds to a file. */
async function linesWith(add: (lines: JsonLines) => void): Promise<string[]> {
  const disk = await diskWithFolder('/data')
  const lostLine = (): string => ''
  const options = { path: PATH, maxBytes: 10_000_000, maxFiles: 1, fsync: false, lostLine }
  const file = new AuditFile(options, { disk, clock: new ManualClock(), logger: silentLogger })
  await file.open()
  add(new JsonLines(file, SERVER_ID))
  await file.close()
  return new TextDecoder()
    .decode(await disk.readFile(PATH))
    .trimEnd()
    .split('\n')
}

const lineOf = (event: AuditEvent, time: number, id: number): string =>
  JSON.stringify(jsonFields(event, { time, id, serverId: SERVER_ID }))

const writeOf = (client: (typeof clients)[number], change: object, path: string): AuditEvent =>
  ({ ...client, ...change, path, category: 'writes', result: 'success' }) as AuditEvent

it('adds the lines that an object of the fields has, for any clients, changes and paths', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...clients), changes, paths, times, ids), { minLength: 1 }),
      async (all) => {
        const lines = await linesWith((lines) => {
          for (const [client, change, path, time, id] of all) {
            expect(lines.addChange(client, change, path, time, id)).toBe(true)
            expect(lines.add(writeOf(client, change, path), time, id)).toBe(true)
          }
        })
        const expected = all.map(([client, change, path, time, id]) =>
          lineOf(writeOf(client, change, path), time, id),
        )
        expect(lines).toEqual(expected.flatMap((line) => [line, line]))
      },
    ),
    { numRuns: 50 },
  )
})

it('adds the line of the first request in flight with its path as it stands there', async () => {
  const requests = new RequestsInFlight()
  const copied = ['/', '/a', '/abc', '/abcd', `/${'x'.repeat(255)}`]
  const notCopied = ['/é', '/a\\b', '/a"b', `/${'x'.repeat(256)}`]
  const client = clients[1]
  const change = { operation: 'delete', versionBefore: -1, xid: 2, zxid: 2 ** 33 + 1 }
  const expected: string[] = []
  const lines = await linesWith((lines) => {
    for (const [index, path] of [...copied, ...notCopied].entries()) {
      const body = new Writer(64)
      body.string(path)
      body.int(-1)
      requests.add(index, OpCode.delete, new Reader(body.take()))
      const isAdded = lines.addFirst(client, change, requests, index, index)
      expect(isAdded).toBe(copied.includes(path) ? true : undefined)
      requests.removeFirst()
      if (isAdded === true) expected.push(lineOf(writeOf(client, change, path), index, index))
    }
  })
  expect(lines).toEqual(expected)
})

it('adds the lines of other events', async () => {
  const acl = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]
  const write = writeOf(clients[1], { operation: 'setAcl' }, '/a')
  const events: AuditEvent[] = [
    { ...write, acl },
    { ...write, category: 'reads' },
    { ...write, result: 'invoked' },
    { ...write, result: 'failure', error: -101 },
    { ...write, path: undefined, detail: 'x' },
    { category: 'auth', operation: 'login', result: 'success', scheme: 'digest' },
    { category: 'admin', operation: 'auditLinesLost', result: 'failure', lost: 3 },
  ]
  const lines = await linesWith((lines) => events.forEach((event, id) => lines.add(event, 5, id)))
  expect(lines).toEqual(events.map((event, id) => lineOf(event, 5, id)))
})
