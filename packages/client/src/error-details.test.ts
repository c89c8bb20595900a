import { expect, it } from 'vitest'
import { ErrorCode, OpCode } from '@zabra/protocol'
import { client, run, setupEachTest, world } from './testing/setup.ts'
import type { RequestOutcome } from './instrumentation.ts'

setupEachTest({})

it('a create without its parent names the parent and the option that creates it', async () => {
  const create = run(client.create('/a/b/c'))
  await expect(create).rejects.toThrow(
    'create /a/b/c: The parent /a/b does not exist; pass parents: true to create it. (NO_NODE)',
  )
  await expect(create).rejects.toMatchObject({ code: 'NO_NODE', path: '/a/b/c' })
  await expect(run(client.chroot('/none').create('/a'))).rejects.toMatchObject({ code: 'NO_CHROOT' })
  await expect(run(client.getData('/a/b/c'))).rejects.not.toThrow('parent /a/b')
  await expect(run(client.multi([{ op: 'create', path: '/a/b' }]))).rejects.toThrow(
    'The parent /a does not exist; create it before',
  )
})

it.each([
  ['setData', '2'],
  ['delete', '2'],
  ['setACL', '1'],
  ['multi', 'another'],
] as const)(
  'a %s with another version names the version that it expected, and a single write the present one',
  async (call, present) => {
    await run(client.create('/a'))
    const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }]
    await run(Promise.all([client.setData('/a', '1'), client.setData('/a', '2'), client.setACL('/a', acl)]))
    const calls = {
      setData: () => client.setData('/a', 'x', { version: 7 }),
      delete: () => client.delete('/a', { version: 7 }),
      setACL: () => client.setACL('/a', acl, { version: 7 }),
      multi: () => client.multi([{ op: 'check', path: '/a', version: 7 }]),
    }
    await expect(run<unknown>(calls[call]())).rejects.toThrow(
      `Expected version 7, and the znode has ${present}; read it again. (BAD_VERSION)`,
    )
  },
)

it('a write with another version rejects with its own error when the present version cannot be read', async () => {
  await run(client.create('/a'))
  world.answerWith(ErrorCode.NOAUTH, { matches: ({ frame }) => frame[11] === OpCode.exists })
  await expect(run(client.setData('/a', 'x', { version: 7 }))).rejects.toThrow('the znode has another')
  const given = client.setData('/a', 'x', { version: 7, timeoutMs: 100 })
  world.faults.toClient = () => undefined
  given.catch(() => {})
  await world.advance(200)
  await expect(given).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
})

it('observers see the parent in a message only as redactPath returns it', async () => {
  const messages: string[] = []
  const own = await world.client({
    redactPath: (path) => path.replaceAll('jane', '…'),
    instrumentation: {
      request: () => (outcome: RequestOutcome) => {
        if (outcome.error !== undefined) messages.push(outcome.error.message, outcome.error.stack ?? '')
      },
    },
  })
  await expect(run(own.create('/jane/order'))).rejects.toThrow('parent /jane does')
  expect(messages[0]).toContain('parent /… does')
  expect(messages.join()).not.toContain('jane')
})
