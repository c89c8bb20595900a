import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CommandRun } from '../testing/cli-fixture.ts'

/** What was asked of the server. */
const asked: [request: string, body: unknown][] = []
let server: Server
let admin: string

beforeAll(async () => {
  server = createServer((request, response) => {
    void (async () => {
      asked.push([`${request.method} ${request.url}`, await json(request)])
      response.end(JSON.stringify({ id: 1 }))
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

beforeEach(() => {
  asked.length = 0
})

const drain = (...argv: string[]): CommandRun['ended'] =>
  new CommandRun(['drain', '--admin', admin, ...argv], undefined).ended

describe('zabra drain', () => {
  it('asks for a permit that lasts for the drain and for the stop after it', async () => {
    expect(await drain('--over', '1ms', '--for', '10s')).toMatchObject({
      code: 0,
      out: 'server 1 may be stopped within 10 s\n',
    })
    expect(asked).toEqual([
      ['POST /api/v1/stop-permit', { seconds: 11 }],
      ['POST /api/v1/drain', { seconds: 0.001 }],
    ])
  })

  it('refuses times that are longer together than a permit can be', async () => {
    const { code, err } = await drain('--over', '30m', '--for', '31m')
    expect(code).toBe(2)
    expect(err).toContain('Expected --over and --for to be an hour together at most')
    expect(asked).toEqual([])
  })
})
