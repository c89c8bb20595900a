import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { Interrupted } from './exit-codes.ts'
import { CommandRun, setupStage, stage, type RunResult } from './testing/cli-fixture.ts'

setupStage({ adminPort: 0, adminRoleAdmin: ['ip:127.0.0.1'] })

const run = (...argv: string[]): Promise<RunResult> => stage.run(argv)

async function succeed(...argv: string[]): Promise<string> {
  const { code, out, err } = await run(...argv)
  expect({ code, err: code === 0 ? '' : err }).toEqual({ code: 0, err: '' })
  return out
}

describe('zabra events', () => {
  it('prints what has happened, as lines or as JSON', async () => {
    await succeed('drain', '--over', '0')
    await succeed('drain', '--end')
    const out = await succeed('events', '--type', 'server.drain', 'snapshot')
    expect(out).toMatch(
      /^\S+Z INFO {2}snapshot.taken Took a snapshot .*file=snapshot\.0 .*\n\S+Z INFO {2}server.drain This server drains: it refuses new sessions .*ms=0\n$/,
    )
    const lines = (await succeed('events', '--type', 'server.drain', '--json')).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { level: 'info', id: 'server.drain', part: 'server', ms: 0 },
    ])
    expect(await succeed('events', '--level', 'error')).toBe('')
  })

  it('follows what happens until it is interrupted', async () => {
    const stop = new AbortController()
    const following = stage.start(['events', '--follow', '--type', 'admin'], { stop })
    await succeed('admin', 'settings', 'maxSessions=77')
    await following.stdout.until(/admin\.settings .* changed="maxSessions: 0 → 77"/)
    stop.abort(new Interrupted('SIGINT'))
    expect((await following.ended).code).toBe(130)
    await succeed('admin', 'settings', '--reset', 'maxSessions')
  })

  it('refuses types that do not exist, and says at once that there is no server', async () => {
    const { code, err } = await run('events', '--type', 'nothing')
    expect([code, err]).toEqual([9, expect.stringContaining('got "nothing"')])
    expect((await run('events', '--follow', '--admin', 'http://127.0.0.1:1')).code).toBe(8)
  })
})

describe('zabra events --follow', () => {
  let server: ReturnType<typeof createServer> | undefined
  afterEach(() => {
    server?.closeAllConnections()
    server?.close()
  })

  /** Answers each request by the next of `answers`. */
  async function serve(
    ...answers: ((request: IncomingMessage, response: ServerResponse) => void)[]
  ): Promise<string> {
    server = createServer((request, response) => answers.shift()!(request, response)).listen(0, '127.0.0.1')
    await new Promise((resolve) => server!.once('listening', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it('connects again after the last event, also where the stream breaks and the server is not there yet', async () => {
    const asked: string[] = []
    const send = (text: string, isEnd: boolean) => (request: IncomingMessage, response: ServerResponse) => {
      asked.push(new URL(request.url!, 'http://a').searchParams.get('after') ?? 'none')
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(text, () => (isEnd ? response.destroy() : undefined))
    }
    const unavailable = (_: IncomingMessage, response: ServerResponse): void => {
      response.writeHead(503, { 'content-type': 'application/problem+json' })
      response.end('{"title":"The server starts"}')
    }
    const event = (id: number, text: string): string =>
      `id: ${id}\nevent: server.role\ndata: {"time":"T","level":"warn","id":"server.role","part":"server","msg":"${text}"}\n\n`
    const url = await serve(
      send(`retry: 1\n\n${event(17, 'one')}:\nid: 19\n\nid: 20\nevent: cut`, true),
      unavailable,
      send(`${event(20, 'two\\u001b[2J')}`, false),
    )
    const stop = new AbortController()
    const following = new CommandRun(['events', '-f', '--admin', url], undefined, { stop })
    await following.stdout.until(/two/)
    stop.abort(new Interrupted('SIGINT'))
    const { out, err } = await following.ended
    expect(asked).toEqual(['none', '19'])
    expect(out).toBe('T WARN  server.role one\nT WARN  server.role two\\x1b[2J\n')
    expect(err).toMatch(/Connecting again\.\nzabra: connected to .* again\n/)
  })
})

describe('zabra admin settings', () => {
  it('lists settings, changes them, and brings those of the start back', async () => {
    const all = await succeed('admin', 'settings')
    expect(all).toMatch(/^key +value +unit +origin +at the start +may change\n/)
    expect(all).toMatch(/\ntickTime +3000 +milliseconds +default\n/)
    expect(await succeed('admin', 'settings', 'slow.request.ms=50', 'maxClientCnxns=0')).toBe(
      'maxClientCnxns: 60 → 0\nslow.request.ms: 200 → 50\nslow.request.readMs: 200 → 50\n',
    )
    expect(await succeed('admin', 'settings', 'slow.request.ms')).toMatch(
      /\nslow\.request\.ms +50 +milliseconds +api +200 +yes\n$/,
    )
    expect(await succeed('admin', 'settings', '--reset', 'slow.request.ms', 'maxClientCnxns')).toContain(
      'slow.request.ms: 50 → 200\n',
    )
    const lines = (await succeed('admin', 'settings', '--changeable', '--json')).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
      expect.objectContaining({ key: 'slow.request.ms', value: '200', origin: 'default', changeable: true }),
    )
  })

  it.each([
    [['slow.request.sm=5'], 9, 'did you mean slow.request.ms?'],
    [['clientPort=5'], 9, 'clientPort cannot change while the server runs'],
    [['slow.request.ms=fast'], 9, 'got "fast"'],
    [['slow.request.ms=5', 'snapCount'], 2, 'Expected KEY=VALUE for each setting'],
    [['--reset', 'snapCount=5'], 2, 'Expected keys alone with --reset'],
    [['--reset'], 2, 'Expected keys for --reset'],
    [['slow.request'], 2, 'Expected keys of the configuration'],
  ])('refuses %j', async (argv, code, text) => {
    const result = await run('admin', 'settings', ...argv)
    expect([result.code, result.err]).toEqual([code, expect.stringContaining(text)])
  })
})
