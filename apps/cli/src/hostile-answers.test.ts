import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CommandRun } from './testing/cli-fixture.ts'

/** Clears the screen, sets the title of the terminal, and reverses the direction of text. */
const COMMANDS = '\u001b[2J\u001b]0;title\u0007\u202e'

/** Answers with texts where a server of Zabra has numbers, too. */
const ANSWERS: Readonly<Record<string, object>> = {
  'GET /api/v1/self': { id: COMMANDS },
  'POST /api/v1/snapshots': { file: `/data/snapshot.1${COMMANDS}`, bytes: COMMANDS },
  'POST /api/v1/leader/transfer': { from: 1, leader: COMMANDS },
  'GET /api/v1/members': {
    members: [
      { id: COMMANDS, role: 'observer', addresses: [{ host: 'h', quorumPort: COMMANDS }], client: null },
    ],
  },
}

let server: Server
let admin: string

beforeAll(async () => {
  server = createServer(({ method, url = '' }, response) => {
    const [path = ''] = url.split('?')
    const answer = ANSWERS[`${method} ${path}`]
    response.writeHead(answer === undefined ? 409 : 200, { 'content-type': 'application/problem+json' })
    response.end(JSON.stringify(answer ?? { title: `No${COMMANDS}`, detail: `Wait${COMMANDS}` }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

describe('what a server says', () => {
  it.each([
    [['session', 'list'], 'zabra: No\\x1b[2J'],
    [['drain', '--wait', '0'], 'zabra: waits: Wait\\x1b[2J'],
  ])('commands no terminal in an error: %j', async (argv, message) => {
    const { err } = await new CommandRun([...argv, '--admin', admin], undefined).ended
    expect(err).toContain(message)
    // oxlint-disable-next-line no-control-regex -- these are what it looks for
    expect(err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
  })

  it.each([[['snapshot', 'take']], [['member', 'list']], [['transfer']]])(
    'commands no terminal where it is printed: %j',
    async (argv) => {
      const { code, out } = await new CommandRun([...argv, '--admin', admin], undefined).ended
      expect(code).toBe(0)
      expect(out).toContain('\\x1b[2J')
      // oxlint-disable-next-line no-control-regex -- these are what it looks for
      expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
    },
  )
})
