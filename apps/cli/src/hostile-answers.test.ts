import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CommandRun } from './testing/cli-fixture.ts'

/** Clears the screen, sets the title of the terminal, and reverses the direction of text. */
const COMMANDS = '\u001b[2J\u001b]0;title\u0007\u202e'

let server: Server
let admin: string

beforeAll(async () => {
  server = createServer((_, response) => {
    response.writeHead(409, { 'content-type': 'application/problem+json' })
    response.end(JSON.stringify({ title: `No${COMMANDS}`, detail: `Wait${COMMANDS}` }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

describe('what a server says to an error', () => {
  it.each([
    [['member', 'list'], 'zabra: No\\x1b[2J'],
    [['drain', '--wait', '0'], 'zabra: waits: Wait\\x1b[2J'],
  ])('commands no terminal: %j', async (argv, message) => {
    const { err } = await new CommandRun([...argv, '--admin', admin], undefined).ended
    expect(err).toContain(message)
    // oxlint-disable-next-line no-control-regex -- these are what it looks for
    expect(err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
  })
})
