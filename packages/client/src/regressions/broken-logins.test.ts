import { OpCode } from '@zabra/protocol'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Client } from '../client-api.ts'
import type { RetryFunction, RetryPolicy } from '../types.ts'
import { bytes } from '../testing/manual-world.ts'
import { ScriptedServer, writeStat } from '../testing/scripted-server.ts'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

let server: ScriptedServer
/** Whether the server answers logins, instead of breaking their connections, and whether it answers other requests. */
let answersLogins: boolean
let answers: boolean
beforeEach(async () => {
  answersLogins = true
  answers = false
  server = await ScriptedServer.start(world, 5000)
  server.onRequest = ({ xid, type, connection }) => {
    if (type !== OpCode.sasl) {
      if (answers) connection.reply(xid, { body: writeStat })
    } else if (answersLogins) connection.reply(xid, { body: (w) => w.buffer(bytes('ok')) })
    else connection.raw.destroy()
  }
})
afterEach(() => server.stop())

function loggedIn(retry: RetryPolicy | RetryFunction): Promise<Client> {
  const sasl = () => {
    let steps = 0
    return { name: 'TEST', step: async () => (steps++ === 0 ? bytes('hi') : undefined) }
  }
  return world.client({ servers: 's:5000', sessionTimeoutMs: 60_000, sasl, retry })
}

/** Breaks the connection, and those of the next logins for three seconds. */
async function breakLogins(): Promise<void> {
  answersLogins = false
  const before = server.connections.length
  server.lastConnection.raw.destroy()
  await world.advance(3000)
  expect(server.connections.length - before).toBeGreaterThan(1)
  answersLogins = true
}

it('a function is asked once about a retry that waits while connections break during their logins', async () => {
  const asked: number[] = []
  const client = await loggedIn((_error, attempt) => {
    asked.push(attempt)
    return 0
  })
  const read = client.exists('/a')
  await world.settle()
  await breakLogins()
  answers = true
  await world.within(8000, read)
  expect(asked).toEqual([1])
})

it('the time limit of a retry that waited through broken logins does not end a later call', async () => {
  const client = await loggedIn({ maxElapsedMs: 20_000 })
  const first = client.exists('/a')
  await world.settle()
  await breakLogins()
  answers = true
  await world.within(8000, first)
  answers = false
  const second = client.exists('/b')
  let hasEnded = false
  second.then(
    () => (hasEnded = true),
    () => (hasEnded = true),
  )
  await world.settle()
  answersLogins = false
  server.lastConnection.raw.destroy()
  // The limit of the first call passes, while the second one waits for a connection within its own.
  await world.advance(17_500)
  expect(hasEnded).toBe(false)
})
