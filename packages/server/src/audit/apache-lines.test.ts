import { OpCode, Reader, Writer } from '@zabra/protocol'
import { ManualClock, silentLogger } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { ApacheLines } from './apache-lines.ts'
import { fileLine, fileTime, type AuditEvent } from './audit-event.ts'
import { AuditFile } from './audit-file.ts'
import { RequestsInFlight } from './requests-in-flight.ts'

const PATH = '/data/audit.log'

const linesOf = (events: readonly (readonly [AuditEvent, number])[]): Promise<string[]> =>
  linesWith((lines) => events.forEach(([event, time]) => lines.add(event, time)))

/** Returns the lines that a body adds to a file. */
async function linesWith(add: (lines: ApacheLines) => void): Promise<string[]> {
  const disk = await diskWithFolder('/data')
  const lostLine = (): string => ''
  const options = { path: PATH, maxBytes: 10_000_000, maxFiles: 1, fsync: false, lostLine }
  const file = new AuditFile(options, { disk, clock: new ManualClock(), logger: silentLogger })
  await file.open()
  add(new ApacheLines(file))
  await file.close()
  return new TextDecoder()
    .decode(await disk.readFile(PATH))
    .trimEnd()
    .split('\n')
}

it('adds the lines that are formatted as text, for all combinations of clients, times, operations, paths and results', async () => {
  const names = [['127.0.0.1'], ['127.0.0.1', 'ad\ta'], [], undefined]
  const paths = ['/', '/a', '/a\\b', '/a\tb', '/a"b', '/é', '/\u{1f600}', `/${'x'.repeat(600)}`, undefined]
  const events: [AuditEvent, number][] = []
  let time = 0
  for (const session of [1n, 0x7f00_0000_0000_0001n, undefined])
    for (const users of names)
      for (const path of paths)
        for (const mode of ['persistent', 'ephemeral', undefined])
          for (const result of ['success', 'failure', 'invoked'] as const)
            for (const operation of ['setData', 'create', 'delete'])
              for (const ip of ['127.0.0.1', undefined]) {
                const event = {
                  category: 'writes',
                  operation,
                  result,
                  session,
                  users,
                  ip,
                  path,
                  mode,
                } as const
                events.push([event, time++ % 5 === 0 ? time : 1e12])
              }
  const acl = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]
  events.push([{ category: 'writes', operation: 'setAcl', result: 'success', path: '/a', acl }, 5])
  events.push([{ category: 'auth', operation: 'login', result: 'success', path: '/a', scheme: 'digest' }, 5])
  events.push([{ category: 'admin', operation: 'lines', result: 'success', path: '/a', lost: 3 }, 5])
  const expected = events.map(([event, at]) => fileLine(event, fileTime(at)))
  expect(await linesOf(events)).toEqual(expected)
})

it('adds the line of the first request in flight with its path as it stands there', async () => {
  const requests = new RequestsInFlight()
  const paths = ['/', '/a', '/abc', '/abcd', `/${'x'.repeat(255)}`]
  const notCopied = ['/é', '/a\\b', '/a"b', `/${'x'.repeat(256)}`]
  const client = { session: 5n, users: ['127.0.0.1'], ip: '127.0.0.1' }
  const expected: string[] = []
  const lines = await linesWith((lines) => {
    for (const [index, path] of [...paths, ...notCopied].entries()) {
      const body = new Writer(64)
      body.string(path)
      body.int(-1)
      requests.add(index, OpCode.delete, new Reader(body.take()))
      const mode = index % 2 === 0 ? undefined : 'ephemeral'
      const isAdded = lines.addFirst(client, { operation: 'delete', mode }, requests, index)
      expect(isAdded).toBe(paths.includes(path) ? true : undefined)
      requests.removeFirst()
      const event = {
        category: 'writes',
        operation: 'delete',
        result: 'success',
        ...client,
        path,
        mode,
      } as const
      if (isAdded === true) expected.push(fileLine(event, fileTime(index)))
    }
  })
  expect(lines).toEqual(expected)
})
