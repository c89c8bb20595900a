import { describe, expect, it } from 'vitest'
import { OperationTimeoutError } from './core.ts'
import { setupEachTest, world } from './testing/setup.ts'
import { bytes } from './testing/manual-world.ts'
import type { Client } from './client-api.ts'

setupEachTest()

/** Returns the stack of the error that a call rejects with. */
async function stackOf(call: () => Promise<unknown>): Promise<string> {
  const error = await world.within(100, call()).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(Error)
  return (error as Error).stack!
}

/** No bytes reach the server, so the deadline passes first. */
function late(client: Client): Promise<unknown> {
  world.faults.toServer = () => undefined
  return client.getData('/none', { timeoutMs: 5 })
}

const failures: readonly (readonly [string, (client: Client) => Promise<unknown>])[] = [
  ['a read', (client) => client.getData('/none')],
  ['a write', (client) => client.setData('/none', bytes('x'))],
  ['a watch', (client) => client.watchOnce('/none', 'data')],
  ['a multi', (client) => client.multi([{ op: 'check', path: '/none' }])],
  ['a create with parents', (client) => client.create('/', { data: bytes('x'), parents: true })],
  ['a call whose deadline passes', late],
]

describe('the stack of an error', () => {
  it.each(failures)('names the caller of %s with callerStacks', async (_name, call) => {
    const client = await world.client({ callerStacks: true })
    async function orderTheBooks(): Promise<void> {
      await call(client)
    }
    expect(await stackOf(orderTheBooks)).toContain('orderTheBooks')
  })

  it('begins with the message of the error', async () => {
    const client = await world.client({ callerStacks: true })
    const stack = await stackOf(() => client.getData('/none'))
    expect(stack.split('\n')[0]).toMatch(/^NoNodeError: getData \/none: /)
    expect(stack.split('\n')[1]).toMatch(/^ +at .*submit /)
  })

  it('names the caller also when the client is closed, and each call gets its own error', async () => {
    const client = await world.client({ callerStacks: true })
    await world.outcome(client.close())
    async function one(): Promise<void> {
      await client.getData('/a')
    }
    async function two(): Promise<void> {
      await client.getData('/b')
    }
    const [first, second] = [await stackOf(one), await stackOf(two)]
    expect(first).toMatch(/ClosedError: getData \/a: .*\n(.*\n)*.* one /)
    expect(second).toMatch(/ClosedError: getData \/b: .*\n(.*\n)*.* two /)
    expect(second).not.toContain('one')
  })

  it('leaves the class and the properties of the error unchanged', async () => {
    const client = await world.client({ callerStacks: true })
    const error: unknown = await world.within(100, late(client)).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(OperationTimeoutError)
    expect(error).toMatchObject({ path: '/none', operation: 'getData', code: 'OPERATION_TIMEOUT' })
  })

  it('is not captured without callerStacks, since capturing costs time at each call', async () => {
    const client = await world.client()
    async function orderTheBooks(): Promise<void> {
      await client.getData('/none')
    }
    expect(await stackOf(orderTheBooks)).not.toContain('orderTheBooks (')
  })
})
