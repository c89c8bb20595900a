import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFixture, releases, writeFixture, writtenRelease } from '@zabra/testkit/release-fixtures'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CliFixture, CommandRun } from '../testing/cli-fixture.ts'

/** What a command has asked a server, and the answer. */
interface Exchange {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  readonly sent: string
  readonly status: number
  readonly type: string
  readonly answer: string
}

interface Fixture {
  readonly commands: readonly {
    readonly argv: readonly string[]
    readonly code: number
    readonly exchanges: readonly Exchange[]
  }[]
}

const LOGIN = ['--auth', 'digest:super:admin']
/** Commands for the HTTP port whose answers are text. */
const COMMANDS: readonly (readonly string[])[] = [
  ['cluster', 'status', '--json'],
  ['cluster', 'finalize', '--dry-run'],
  ['upgrade', 'plan'],
  ['member', 'list'],
  ['member', 'add', '2=127.0.0.1:1:2:observer;3', '--dry-run'],
  ['member', 'remove', '7', '--dry-run'],
  ['transfer', '--to', '1'],
  ['transfer', '--to', '9'],
  ['session', 'list', '--json'],
  ['connection', 'list'],
  ['watches'],
  ['top'],
  ['events'],
  ['admin', 'log-level'],
  ['admin', 'log-level', 'debug', '--part', 'election', '--for', '1m'],
  ['admin', 'settings', '--changeable'],
  ['admin', 'settings', 'slow.request.ms=300'],
  ['snapshot', 'take'],
  ['doctor', '--json'],
]

/** Starts a member that is an ensemble alone, until the test ends. */
async function startStage(): Promise<CliFixture> {
  const stage = await CliFixture.startMember()
  onTestFinished(() => stage.stop())
  return stage
}

/** Listens on a free port until the test ends. Resolves to the URL. */
async function listen(
  answer: (request: IncomingMessage, response: ServerResponse, sent: string) => Promise<void> | void,
): Promise<string> {
  const server = createServer((request, response) => {
    void (async () => {
      let sent = ''
      for await (const chunk of request) sent += String(chunk)
      await answer(request, response, sent)
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const ask = (
  stage: CliFixture,
  { method, path, sent }: Pick<Exchange, 'method' | 'path' | 'sent'>,
): Promise<Response> =>
  fetch(stage.adminUrl + path, {
    method,
    headers: { accept: 'application/json', authorization: 'digest super:admin' },
    ...(sent === '' ? {} : { body: sent }),
  })

async function capture(): Promise<Fixture> {
  const stage = await startStage()
  let exchanges: Exchange[] = []
  const url = await listen(async ({ method = '', url: path = '' }, response, sent) => {
    const answered = await ask(stage, { method, path, sent })
    const answer = (await answered.text()).replaceAll(stage.folder, '/folder')
    const type = answered.headers.get('content-type') ?? ''
    exchanges.push({ method, path, sent, status: answered.status, type, answer })
    response.writeHead(answered.status, { 'content-type': type }).end(answer)
  })
  const commands: Fixture['commands'][number][] = []
  for (const argv of COMMANDS) {
    exchanges = []
    const { code } = await stage.run([...argv, ...LOGIN], { environment: { ZABRA_ADMIN: url } })
    commands.push({ argv, code, exchanges })
  }
  return { commands }
}

if (writtenRelease !== undefined)
  it('commands and a server write requests and answers', async () =>
    writeFixture('operator', await capture()))

/** Returns where a value lacks a member of another one, or has one of another type. Lists are alike in their first elements. */
function missingIn(value: unknown, expected: unknown, at = ''): string[] {
  if (expected === null || value === null) return []
  if (typeof expected !== typeof value || Array.isArray(expected) !== Array.isArray(value))
    return [`${at}: expected ${typeof expected}`]
  if (Array.isArray(expected))
    return expected.length === 0 || (value as unknown[]).length === 0
      ? []
      : missingIn((value as unknown[])[0], expected[0], `${at}[]`)
  if (typeof expected !== 'object') return []
  return Object.entries(expected as object).flatMap(([name, one]) =>
    Object.hasOwn(value as object, name)
      ? missingIn((value as Record<string, unknown>)[name], one, `${at}.${name}`)
      : [`${at}.${name}: missing`],
  )
}

describe.each(releases)('what commands and a server of release %s have said over HTTP', (release) => {
  const { commands } = readFixture<Fixture>(release, 'operator')

  it.each(commands)('is understood by the command $argv', async ({ argv, code, exchanges }) => {
    const left = [...exchanges]
    const url = await listen(({ method, url: path }, response) => {
      const at = left.findIndex((one) => one.method === method && one.path === path)
      const { status, type, answer } = left[at] ?? {
        status: 404,
        type: 'application/problem+json',
        answer: `{"title":"There is no such operation","detail":"${method} ${path}","status":404}`,
      }
      left.splice(at, at < 0 ? 0 : 1)
      response.writeHead(status, { 'content-type': type }).end(answer)
    })
    const command = new CommandRun([...argv, ...LOGIN], undefined, {
      input: '',
      environment: { ZABRA_ADMIN: url },
    })
    const result = await command.ended
    expect(result.code, result.err).toBe(code)
    expect(left).toEqual([])
  })

  it('is understood by the server: answers have the statuses and all members that they had', async () => {
    const stage = await startStage()
    for (const exchange of commands.flatMap(({ exchanges }) => exchanges)) {
      const { path, status, type, answer } = exchange
      const answered = await ask(stage, exchange)
      const text = await answered.text()
      expect([path, answered.status, answered.headers.get('content-type')]).toEqual([path, status, type])
      if (type.includes('json'))
        expect([path, missingIn(JSON.parse(text), JSON.parse(answer))]).toEqual([path, []])
    }
  })
})
