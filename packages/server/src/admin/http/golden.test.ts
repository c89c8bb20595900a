import { readFileSync } from 'node:fs'
import { OpCode } from '@zabra/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TestServer } from '../../testing/test-server.ts'

/** The answers of Apache ZooKeeper 3.9.4 alone, with a client that has made the ephemeral node /app/a and watches /app. */
const captured = readFileSync(new URL('../testdata/apache-3.9-commands.txt', import.meta.url), 'utf8')
const answers = [...captured.matchAll(/^== (\w+) (\d+)\n([\s\S]*?)\n(?=== |$(?![\s\S]))/gm)].map(
  ([, name, status, body]) => ({ name: name!, status: Number(status), body: body! }),
)

/** Returns a body with values of one kind made equal, and without the buckets of `dump` that have no session. */
const shapeOf = (body: string): string =>
  body
    // Connections in memory count as secure ones.
    .replace(/("connections" : )([^]*)(,\n {2}"secure_connections" : )(\[ \])/, '$1$4$3$2')
    .replaceAll(/^ *"\d+" : \[ \],?\n/gm, '')
    .replaceAll(/"[^"]*"( :)?/g, (text, isKey) =>
      isKey && !/^"\d/.test(text) ? text : `"text"${isKey ?? ''}`,
    )
    .replaceAll(/(?<=[ [])-?\d+\.\d+(?:E\d+)?/g, '0.0')
    .replaceAll(/(?<=[ [])-?\d+(?=[,\n\s])/g, '0')

describe('the answers of the admin commands', () => {
  let server: TestServer

  beforeEach(async () => {
    server = await TestServer.start()
    const client = await server.connect()
    client.create(1, '/app')
    client.create(2, '/app/a', 1)
    client.read(3, OpCode.exists, '/app', true)
    await server.untilIdle()
  })

  afterEach(() => server.stop())

  it.each(answers)('have the members of Apache ZooKeeper in its order and form: $name', async (answer) => {
    const { status, text } = await server.http.request(`/commands/${answer.name}`)
    expect(status).toBe(answer.status)
    expect(shapeOf(text)).toBe(shapeOf(answer.body))
  })
})
