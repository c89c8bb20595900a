import type { AddressInfo } from 'node:net'
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import type { Client } from '@zabra/client'
import { httpServer, nodePlatform, tlsNetwork } from '@zabra/runtime/node'
import { createServer, defaults, parseConfiguration, type Server } from '@zabra/server/core'
import { freePorts } from '@zabra/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Interrupted } from './exit-codes.ts'
import { openSession } from './session/open.ts'
import { ClientTransport } from './session/transport.ts'
import { CommandRun } from './testing/cli-fixture.ts'

const IDS = [1, 2, 3] as const
const folder = mkdtempSync(join(tmpdir(), 'zabra-roll-'))
const servers = new Map<number, Server>()
/** What the commands have asked of the test. */
const asked: string[] = []
let start: (id: number) => Promise<void>
let control: HttpServer
let adminOf: string
let admin: string
let zk: Client
/** Runs before a member is restarted. */
let onRestart: (id: number) => Promise<void> | void

beforeAll(async () => {
  const ports = await Promise.all(IDS.map(() => freePorts(4)))
  const lines = IDS.map((id) => {
    const [quorum, election, client] = ports[id - 1]!
    return `server.${id}=127.0.0.1:${quorum}:${election};127.0.0.1:${client}`
  })
  adminOf = IDS.map((id) => `${id}=http://127.0.0.1:${ports[id - 1]![3]}`).join(',')
  admin = `http://127.0.0.1:${ports[0]![3]}`
  start = async (id) => {
    const [, , clientPort, adminPort] = ports[id - 1]!
    const settings = defaults({
      dataDir: join(folder, String(id)),
      serverId: id,
      clientPort: clientPort!,
      adminPort: adminPort!,
      adminRoleOperate: ['ip:127.0.0.1'],
      ensemble: parseConfiguration(lines.join('\n')),
      fourLetterWords: ['*'],
      tickTimeMs: 200,
    })
    servers.set(
      id,
      await createServer(settings, nodePlatform({ networkFactories: { tls: tlsNetwork, http: httpServer } })),
    )
  }
  await Promise.all(IDS.map(start))
  while (![...servers.values()].every(({ serving }) => serving)) await setImmediate()
  control = createHttpServer((request, response) => {
    const id = Number(request.url!.slice(1))
    asked.push(request.url!)
    void (async () => {
      await onRestart(id)
      await servers.get(id)!.close()
      await start(id)
      response.end('restarted')
    })().catch((error: Error) => response.end(error.message))
  })
  await new Promise<void>((resolve) => control.listen(0, '127.0.0.1', resolve))
  const list = ports.map(([, , client]) => `127.0.0.1:${client}`).join(',')
  const options = { server: list, auth: [], timeoutMs: 20_000, clientTransport: new ClientTransport() }
  zk = await openSession(options, new AbortController().signal)
  await zk.create('/load')
})

afterAll(async () => {
  await zk.close()
  control.closeAllConnections()
  await new Promise((resolve) => control.close(resolve))
  await Promise.all([...servers.values()].map((server) => server.close()))
  rmSync(folder, { recursive: true })
})

beforeEach(() => {
  asked.length = 0
  onRestart = () => {}
})

/** Returns a command that lets the test restart a member. */
const restarting = (): string => {
  const { port } = control.address() as AddressInfo
  const script = `fetch('http://127.0.0.1:${port}/{id}').then(async (one) => console.log(await one.text(), '{host}'))`
  return `${process.execPath} -e "${script}"`
}

const roll = (...argv: string[]): CommandRun =>
  new CommandRun(
    ['cluster', 'roll', '--admin', admin, '--admin-of', adminOf, '--over', '0', ...argv],
    undefined,
  )

const leaderId = async (): Promise<number> => {
  const answer = await fetch(`${admin}/api/v1/cluster`)
  return ((await answer.json()) as { leader: number }).leader
}

describe('zabra cluster roll', () => {
  it('prints the steps with --dry-run: followers first, the leader last', async () => {
    const leader = await leaderId()
    const { code, out } = await roll('--exec', 'ssh {host} restart {id}', '--dry-run').ended
    expect(code).toBe(0)
    const order = out.trimEnd().split('\n').slice(1)
    expect(order).toHaveLength(3)
    expect(order.at(-1)).toMatch(
      new RegExp(`^ *${leader} +leader +http://127.0.0.1:\\d+ +ssh 127.0.0.1 restart ${leader}$`),
    )
    expect(asked).toEqual([])
  })

  it('restarts each member once while a client writes, without a failed write or a lost quorum', async () => {
    const leader = await leaderId()
    let isOver = false
    let [written, retried] = [0, 0]
    const load = (async () => {
      while (!isOver)
        try {
          await zk.setData('/load', new TextEncoder().encode(String(written)))
          written++
        } catch (error) {
          if ((error as { retryable?: boolean }).retryable !== true) throw error
          retried++
        }
    })()
    const together: number[] = []
    onRestart = (id) => {
      const others = [...servers].filter(([other]) => other !== id)
      if (!others.every(([, { serving }]) => serving)) together.push(id)
    }
    const { code, out, err } = await roll('--exec', restarting()).ended
    isOver = true
    await load
    expect({ code, err: code === 0 ? '' : err }).toEqual({ code: 0, err: '' })
    expect(asked.length).toBe(3)
    expect(new Set(asked).size).toBe(3)
    expect(asked.at(-1)).toBe(`/${leader}`)
    expect(together).toEqual([])
    expect(out.match(/restarted 127\.0\.0\.1\nserver \d is ready again/g)).toHaveLength(3)
    expect(written).toBeGreaterThan(0)
    console.log(`${written} writes, ${retried} retried`)
  }, 60_000)

  it('stops where a command fails, gives the permit back, and says how to go on', async () => {
    const { code, err } = await roll('--exec', 'echo about {id}; exit 3').ended
    expect(code).toBe(1)
    expect(err).toMatch(/stopped at server \d; restarted so far: none\. .*--from \d,\d,\d/)
    expect(err).toContain('has exited with 3')
    for (const part of adminOf.split(',')) {
      const answer = await fetch(`${part.slice(2)}/api/v1/self`)
      expect(await answer.json()).toMatchObject({ draining: false, stopPermitMs: 0 })
    }
  })

  it('stops where a member was not restarted, and goes on with those that it is given', async () => {
    const first = await roll('--exec', 'true', '--ready', '0').ended
    expect(first.code).toBe(20)
    expect(first.err).toContain('so the command has not restarted it')
    const last = await leaderId()
    const { code, out } = await roll('--exec', restarting(), '--from', String(last), '--json').ended
    expect({ code, out: JSON.parse(out) }).toMatchObject({ code: 0, out: { id: last, restarted: true } })
    expect(asked).toEqual([`/${last}`])
  }, 60_000)

  it('says who may hold a permit where a member does not come back', async () => {
    const leader = await leaderId()
    const id = IDS.find((one) => one !== leader)!
    onRestart = async () => {
      await servers.get(id)!.close()
      throw new Error('It does not start')
    }
    const { code, err } = await roll('--exec', restarting(), '--from', String(id), '--ready', '0').ended
    await start(id)
    // The next roll needs all members.
    while ((await roll('--exec', 'true', '--dry-run').ended).code !== 0);
    expect([code, err]).toEqual([
      20,
      expect.stringMatching(
        new RegExp(`server ${id} has not given it back: unless it has stopped, it may hold the permit`),
      ),
    ])
    expect(err).toContain('ECONNREFUSED')
  }, 60_000)

  it('waits for a member that reads its data after the restart', async () => {
    const id = await leaderId()
    const url = adminOf.split(',')[id - 1]!.slice(2)
    let reads = 0
    onRestart = () => void (reads = 2)
    // In front of the HTTP port of the member, which answers so until it has read its data.
    const port = createHttpServer((request, response) => {
      if (reads > 0 && request.url === '/api/v1/self') {
        reads--
        const problem = {
          title: 'The server starts',
          status: 503,
          detail: 'It reads the snapshot and the log.',
        }
        response.writeHead(503, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem))
        return
      }
      void (async () => {
        const { method = 'GET' } = request
        const body = await text(request)
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(url + request.url!, { method, headers, ...(body === '' ? {} : { body }) })
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
      })()
    })
    await new Promise<void>((resolve) => port.listen(0, '127.0.0.1', resolve))
    const through = `${id}=http://127.0.0.1:${(port.address() as AddressInfo).port}`
    const { code, err } = await roll('--exec', restarting(), '--from', String(id), '--admin-of', through)
      .ended
    expect({ code, err: code === 0 ? '' : err, reads }).toEqual({ code: 0, err: '', reads: 0 })
    port.closeAllConnections()
    await new Promise((resolve) => port.close(resolve))
  }, 60_000)

  it('ends the command and the drain with Ctrl-C', async () => {
    const run = roll('--exec', 'echo begun {id}; cat; sleep 600')
    await run.stdout.until(/begun/)
    run.stop.abort(new Interrupted('SIGINT'))
    const { code, out } = await run.ended
    expect(code).toBe(130)
    const id = Number(/begun (\d)/.exec(out)![1])
    const url = adminOf.split(',')[id - 1]!.slice(2)
    expect(await (await fetch(`${url}/api/v1/self`)).json()).toMatchObject({
      draining: false,
      stopPermitMs: 0,
    })
  })

  it.each([
    [['--admin-of', '1=http://127.0.0.1:1'], 2, 'Expected the HTTP port of server'],
    [['--from', '9'], 2, 'There is no member 9. The members are'],
    [['--over', '30m', '--for', '31m', '--dry-run'], 2, 'Expected --over and --for to be an hour together'],
    [['--from', 'x'], 2, 'Expected ids such as 3,2.'],
    [['--admin-pattern', 'http://{host}:8080'], 2, 'Give one of them'],
  ])('%j is refused', async (argv, exitCode, message) => {
    const { code, err } = await roll('--exec', 'true', ...argv).ended
    expect([code, err]).toEqual([exitCode, expect.stringContaining(message)])
  })
})

describe('the host of a member', () => {
  it.each(['zk1; reboot:2888', '-oProxyCommand=x:2888', '$(id):2888', 'zk1 zk2:2888', ':2888'])(
    'never reaches a shell as %j',
    async (address) => {
      const members = [
        { id: 1, state: 'standalone', participant: true, softwareVersion: null, problem: null, address },
      ]
      const body = JSON.stringify({ leader: 1, failuresLeft: 0, members })
      const fake = createHttpServer((_, response) => void response.end(body))
      await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve))
      const url = `http://127.0.0.1:${(fake.address() as AddressInfo).port}`
      const argv = ['cluster', 'roll', '--admin', url, '--admin-of', `1=${url}`, '--exec', 'echo {host}']
      const { code, err } = await new CommandRun(argv, undefined).ended
      fake.closeAllConnections()
      fake.close()
      expect([code, err]).toEqual([9, expect.stringContaining('Expected the host of server 1')])
    },
  )
})
