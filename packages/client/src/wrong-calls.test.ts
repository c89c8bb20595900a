import { expect, it } from 'vitest'
import { ZooKeeperError } from './errors.ts'
import { json } from './codecs.ts'
import { client, run, setupEachTest } from './testing/setup.ts'
import type { Client } from './client-api.ts'

setupEachTest({})

/** Drains a stream, for calls that return one. */
async function drain(stream: unknown): Promise<void> {
  for await (const _item of stream as AsyncIterable<unknown>);
}

/** A client as a program without types sees it. */
type Untyped = Readonly<Record<keyof Client & string, (...args: unknown[]) => unknown>>

const good = { perms: 31, scheme: 'world', id: 'anyone' }

/** Calls that a caller without types makes, and a part of the message that each rejects with. */
const wrongCalls: readonly [call: string, make: (c: Untyped) => unknown, message: RegExp][] = [
  [
    'create without a path',
    (c) => c.create(),
    /create: Expected a path as a string, got undefined|Expected a path/,
  ],
  ['getData without a path', (c) => c.getData(), /Expected a path as a string, got undefined/],
  ['getData with a number', (c) => c.getData(5), /Expected a path as a string, got 5/],
  ['exists with null', (c) => c.exists(null), /Expected a path as a string, got null/],
  ['delete of an object', (c) => c.delete({}), /Expected a path as a string, got an object/],
  ['getChildren with a list', (c) => c.getChildren(['/a']), /Expected a path as a string, got a list/],
  ['sync without a path', (c) => c.sync(), /Expected a path/],
  ['createMissing with a number', (c) => c.createMissing([5]), /Expected/],
  ['walk without a path', (c) => drain(c.walk()), /Expected a path/],
  ['a recursive delete without a path', (c) => c.delete(undefined, { recursive: true }), /Expected a path/],
  ['getEphemerals of a number', (c) => c.getEphemerals(7), /Expected a path/],
  [
    'watchOnce without a kind',
    (c) => c.watchOnce('/'),
    /kind of a watch as 'data' or 'exists' or 'children', got undefined/,
  ],
  ['watchOnce with an inherited name', (c) => c.watchOnce('/', 'constructor'), /kind of a watch/],
  ['multi without operations', (c) => c.multi(), /multi: Expected operations as a list, got undefined/],
  ['multi with null', (c) => c.multi([null]), /Expected operation 0 as \{ op, path, … \}, got null/],
  ['multi with a wrong op', (c) => c.multi([{ op: 'remove', path: '/a' }]), /remove/],
  [
    'multi with a misspelt property',
    (c) => c.multi([{ op: 'delete', path: '/a', verson: 3 }]),
    /Did you mean version\?/,
  ],
  ['multiRead with a number', (c) => c.multiRead([5]), /Expected operation 0/],
  ['createMissing without nodes', (c) => c.createMissing(), /Expected nodes as a list/],
  ['createMissing with null', (c) => c.createMissing([null]), /Expected/],
  ['reconfig without a change', (c) => c.reconfig(), /Expected a change/],
  [
    'setACL without an ACL',
    (c) => c.setACL('/'),
    /Expected an ACL as a list of \{ perms, scheme, id \}, got undefined/,
  ],
  ['updateServerList with a number', (c) => c.updateServerList(5), /Expected/],
  ['chroot with a number', (c) => c.chroot(5), /Expected/],
  ['setData without data', (c) => c.setData('/a'), /Expected data/],
  ['setData with a number', (c) => c.setData('/a', 5), /Expected data/],
  ['an option as a number', (c) => c.getData('/', 5), /Expected options as an object, got 5/],
  ['an option as null', (c) => c.getData('/', null), /Expected options as an object, got null/],
  ['a misspelt option', (c) => c.getData('/', { tiemout: 5 }), /got tiemout\. Did you mean timeout/],
  ['an option that no call has', (c) => c.getData('/', { colour: 5 }), /got colour\.$/],
  [
    'a flag of another client',
    (c) => c.create('/a', { ephemeral: true }),
    /got ephemeral\. Did you mean mode: 'ephemeral'\?/,
  ],
  [
    'a wrong mode',
    (c) => c.create('/a', { mode: 'ephemral' }),
    /Expected option mode to be 'persistent' or .*got "ephemral"/,
  ],
  [
    'a wrong mode of a watch',
    (c) => c.watch('/', { mode: 'persistant' }),
    /Expected option mode to be 'persistent' or 'persistentRecursive', got "persistant"/,
  ],
  [
    'a version as a string',
    (c) => c.setData('/', new Uint8Array(0), { version: '1' }),
    /Expected option version to be a version/,
  ],
  ['a version that is no number', (c) => c.delete('/a', { version: Number.NaN }), /got NaN/],
  ['a version as null', (c) => c.delete('/a', { version: null }), /got null/],
  [
    'a signal that is no signal',
    (c) => c.getData('/', { signal: 5000 }),
    /Expected option signal to be an AbortSignal, got 5000/,
  ],
  ['a misspelt limit of retries', (c) => c.getData('/', { retry: { maxAtempts: 1 } }), /maxAttempts/],
  ['an option of another call', (c) => c.getData('/', { recursive: true }), /got recursive/],
  ['a filter that is no function', (c) => drain(c.walk('/', { filter: '/a' })), /filter to be a function/],
  [
    'a batchSize of zero',
    (c) => c.delete('/a', { recursive: true, batchSize: 0 }),
    /batchSize to be a number of 1 znode or more, got 0/,
  ],
  [
    'permissions as letters',
    (c) => c.create('/a', { acl: [{ ...good, perms: 'cdrwa' }] }),
    /perms of ACL entry 0 .*got "cdrwa"/,
  ],
  [
    'permissions that are no number',
    (c) => c.create('/a', { acl: [good, { ...good, perms: Number.NaN }] }),
    /perms of ACL entry 1 .*got NaN/,
  ],
  ['permissions as null', (c) => c.setACL('/', [{ ...good, perms: null }]), /got null/],
  ['permissions beyond all', (c) => c.setACL('/', [{ ...good, perms: 64 }]), /got 64/],
  ['no permissions', (c) => c.createMissing([{ path: '/a/b', acl: [{ ...good, perms: 0 }] }]), /got 0/],
  [
    'an ACL entry in the shape of the protocol',
    (c) => c.setACL('/', [{ perms: 31, id: good }]),
    /scheme of ACL entry 0/,
  ],
  ['an ACL without an id', (c) => c.setACL('/', [{ perms: 31, scheme: 'world' }]), /id of ACL entry 0/],
  ['an ACL that is no list', (c) => c.create('/a', { acl: good }), /acl to be a list/],
  [
    'an ACL in a multi',
    (c) => c.multi([{ op: 'create', path: '/a', acl: [{ ...good, perms: 'r' }] }]),
    /perms of ACL entry 0/,
  ],
  [
    'an ACL of a missing node',
    (c) => c.createMissing([{ path: '/a', acl: [{ ...good, perms: 64 }] }]),
    /perms of ACL entry 0/,
  ],
]

it.each(wrongCalls)(
  '%s rejects with a UsageError that says what was expected',
  async (_name, make, message) => {
    const error = await (async () => run((async () => make(client as unknown as Untyped))()))().then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(ZooKeeperError)
    expect(error).toMatchObject({
      code: 'USAGE',
      maybeApplied: false,
      message: expect.stringMatching(message),
    })
    expect(client.state).toBe('connected')
  },
)

it('a call with wrong arguments sends nothing', async () => {
  for (const [, make] of wrongCalls)
    await run((async () => make(client as unknown as Untyped))()).catch(() => {})
  expect((await run(client.getChildren('/'))).children).toEqual(['zookeeper'])
})

it('a call that returns a promise rejects and never throws', () => {
  for (const [name, make] of wrongCalls.filter(([call]) => !call.startsWith('chroot'))) {
    let result: unknown
    expect(() => (result = make(client as unknown as Untyped)), name).not.toThrow()
    ;(result as Promise<unknown>).catch(() => {})
  }
})

it('a message shows no contents of an object, which may be a secret', async () => {
  const wrong = { retry: { password: 'secret' }, acl: { id: 'secret' } }
  for (const [name, value] of Object.entries(wrong)) {
    const error: unknown = await run(client.create('/a', { [name]: value } as never)).catch((e: unknown) => e)
    expect(String(error)).not.toContain('secret')
  }
})

it('a value that the codec cannot encode or decode rejects with a CodecError that has the cause', async () => {
  const numbers = client.withCodec(
    json((value) => {
      if (typeof value !== 'number') throw new TypeError('Expected a number')
      return value
    }),
  )
  await run(client.create('/bad', { data: new Uint8Array([0x7b]) }))
  await run(numbers.create('/n', 1))
  await expect(run(numbers.get('/bad'))).rejects.toMatchObject({
    name: 'CodecError',
    code: 'DECODE_FAILED',
    path: '/bad',
    cause: expect.any(SyntaxError),
  })
  await expect(run(numbers.update('/bad', (n) => n))).rejects.toMatchObject({ code: 'DECODE_FAILED' })
  await expect(run(numbers.children('/'))).rejects.toMatchObject({ code: 'DECODE_FAILED', path: '/bad' })
  await expect(run(numbers.set('/n', 'x' as never))).rejects.toMatchObject({
    code: 'ENCODE_FAILED',
    path: '/n',
    maybeApplied: false,
  })
  await expect(run(numbers.create('/m', {} as never))).rejects.toMatchObject({ code: 'ENCODE_FAILED' })
  await expect(run(numbers.update('/n', () => 'x' as never))).rejects.toMatchObject({ code: 'ENCODE_FAILED' })
  await expect(run(numbers.watch('/bad').next())).rejects.toMatchObject({ code: 'DECODE_FAILED' })
})
