import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Interrupted } from '../exit-codes.ts'
import { CommandRun } from '../testing/cli-fixture.ts'

/** What was asked of the server. */
const asked: [request: string, body: unknown][] = []
let server: Server
let admin: string
/** Answers a request in place of a server that does what is asked. */
let instead: (request: string, response: ServerResponse) => boolean

beforeAll(async () => {
  server = createServer((request, response) => {
    void (async () => {
      const name = `${request.method} ${request.url}`
      asked.push([name, request.method === 'POST' ? await json(request) : undefined])
      if (!instead(name, response)) response.end(JSON.stringify({ id: 1 }))
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
  instead = () => false
})

const start = (...argv: string[]): CommandRun =>
  new CommandRun(['drain', '--admin', admin, ...argv], undefined)
const drain = (...argv: string[]): CommandRun['ended'] => start(...argv).ended

const names = (): string[] => asked.map(([name]) => name)
const given = ['DELETE /api/v1/drain', 'DELETE /api/v1/stop-permit']

function fail(response: ServerResponse): true {
  response.writeHead(500, { 'content-type': 'application/problem+json' })
  response.end('{"title": "The server has failed"}')
  return true
}

describe('zabra drain', () => {
  it('asks for a permit and a drain that last for the drain and for the stop after it', async () => {
    expect(await drain('--over', '1ms', '--for', '10s')).toMatchObject({
      code: 0,
      out: 'server 1 may be stopped within 10 s\n',
    })
    expect(asked).toEqual([
      ['GET /api/v1/self', undefined],
      ['POST /api/v1/stop-permit', { seconds: 11 }],
      ['POST /api/v1/drain', { seconds: 0.001, for: 11 }],
    ])
  })

  it('gives the permit back where the drain fails', async () => {
    instead = (name, response) => name === 'POST /api/v1/drain' && fail(response)
    const { code, err } = await drain('--over', '0')
    expect([code, err]).toEqual([
      9,
      'zabra: server 1: gives its permit to stop back\nzabra: The server has failed.\n',
    ])
    expect(names().slice(2)).toEqual(['POST /api/v1/drain', ...given])
  })

  it('gives a permit back that may have been granted in an answer which was lost', async () => {
    instead = (name, response) => name === 'POST /api/v1/stop-permit' && !!response.destroy()
    const { code, err } = await drain()
    expect([code, err]).toEqual([8, expect.stringContaining('gives its permit to stop back')])
    expect(names().slice(1)).toEqual(['POST /api/v1/stop-permit', ...given])
  })

  it('gives the permit back on Ctrl-C', async () => {
    const run = start('--over', '59m', '--for', '1s')
    instead = (name, response) => {
      if (name !== 'POST /api/v1/drain') return false
      response.end('{}', () => run.stop.abort(new Interrupted('SIGINT')))
      return true
    }
    expect((await run.ended).code).toBe(130)
    expect(names().slice(-2)).toEqual(given)
  })

  it('tries again to give it back where the connection breaks', async () => {
    let lost = 0
    instead = (name, response) =>
      name === 'POST /api/v1/drain'
        ? fail(response)
        : name === given[0] && lost++ === 0 && !!response.destroy()
    const { code, err } = await drain('--over', '0')
    expect([code, err]).toEqual([9, expect.not.stringContaining('has not given it back')])
    expect(names().slice(-3)).toEqual([given[0], ...given])
  })

  it('says which server may hold a permit that it cannot give back, for how long, and what ends it', async () => {
    instead = (name, response) => !/self|permit/.test(name) && fail(response)
    const { code, err } = await drain('--over', '0', '--for', '10s')
    expect(code).toBe(9)
    expect(err).toContain(
      `server 1 has not given it back: unless it has stopped, it may hold the permit and refuse sessions for up to 10 s, or until zabra drain --end --admin ${admin}. The server has failed.`,
    )
  })

  it('leaves alone what others do with a server that may not stop', async () => {
    instead = (name, response) => {
      if (name !== 'POST /api/v1/stop-permit') return false
      response.writeHead(409)
      response.end('{"title": "The quorum needs this server", "detail": "Try again later."}')
      return true
    }
    expect((await drain('--wait', '0')).code).toBe(9)
    expect(names()).toEqual(['GET /api/v1/self', 'POST /api/v1/stop-permit'])
  })

  it('refuses times that are longer together than a permit can be', async () => {
    const { code, err } = await drain('--over', '30m', '--for', '31m')
    expect(code).toBe(2)
    expect(err).toContain('Expected --over and --for to be an hour together at most')
    expect(asked).toEqual([])
  })
})

describe('zabra cluster roll', () => {
  const member = { id: 1, state: 'standalone', participant: true, softwareVersion: null, problem: null }
  let uptimeMs: number
  let self: object

  /** Rolls one server. */
  const roll = (ask: (name: string, response: ServerResponse) => boolean): CommandRun => {
    uptimeMs = 1e9
    self = {}
    instead = (name, response) => {
      const json = (body: object): true => !!response.end(JSON.stringify(body))
      if (ask(name, response)) return true
      if (name === 'GET /api/v1/cluster') return json({ leader: 1, failuresLeft: 0, members: [member] })
      if (name === 'GET /api/v1/self') return json({ id: 1, uptimeMs, ready: true, checks: [], ...self })
      return false
    }
    const command = `${process.execPath} -e "fetch('${admin}/command')"`
    const argv = ['--admin', admin, '--admin-of', `1=${admin}`, '--over', '0', '--for', '1s']
    return new CommandRun(['cluster', 'roll', ...argv, '--exec', command], undefined)
  }
  const permits = (): number => names().filter((name) => name === 'POST /api/v1/stop-permit').length

  /** Rolls one server by a command that ends after `restart` is called. */
  const rollUntil = (
    ask: (name: string, response: ServerResponse, restart: () => void) => boolean,
  ): CommandRun => {
    let end = (): void => {}
    const ended = new Promise<void>((resolve) => (end = resolve))
    const restart = (): void => {
      uptimeMs = 0
      end()
    }
    return roll((name, response) => {
      if (name !== 'GET /command') return ask(name, response, restart)
      // The command may begin later than the server is restarted.
      void ended.then(() => response.end())
      return true
    })
  }

  it('renews the permit and the drain while the command lasts longer than they do', async () => {
    const run = rollUntil((name, _response, restart) => {
      if (permits() === 3 && name === 'POST /api/v1/drain') restart()
      return false
    })
    expect(await run.ended).toMatchObject({ code: 0, out: expect.stringContaining('is ready again') })
    const renewals = asked.filter(([name]) => name.startsWith('POST')).slice(2)
    expect(renewals).toEqual([
      ['POST /api/v1/stop-permit', { seconds: 1 }],
      ['POST /api/v1/drain', { seconds: 0, for: 1 }],
      ['POST /api/v1/stop-permit', { seconds: 1 }],
      ['POST /api/v1/drain', { seconds: 0, for: 1 }],
    ])
  }, 60_000)

  it('gives back what a renewal has asked of the server that was restarted meanwhile', async () => {
    const run = roll((name) => {
      uptimeMs = 0
      if (name === 'GET /command') self = { stopPermitMs: 500 }
      if (name === given[1]) self = {}
      return false
    })
    expect(await run.ended).toMatchObject({ code: 0 })
    expect(names().filter((name) => name.startsWith('DELETE'))).toEqual(given)
  }, 60_000)

  it('says where the leader does not renew the permit, and goes on', async () => {
    const run = rollUntil((name, response, restart) => {
      if (name !== 'POST /api/v1/stop-permit' || permits() === 1) return false
      if (permits() === 3) restart()
      response.writeHead(409)
      return !!response.end('{"title": "The quorum needs this server", "detail": "Try again later."}')
    })
    const { code, err } = await run.ended
    expect([code, err.match(/its permit to stop is not renewed: Try again later\./g)]).toEqual([
      0,
      ['its permit to stop is not renewed: Try again later.'],
    ])
  }, 60_000)
})
