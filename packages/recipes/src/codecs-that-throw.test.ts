import { CodecError, type Client, type Codec } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { AtomicValue, Configuration, Group, Queue } from './index.ts'
import { NameService } from './name-service/index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { client, run, setupEachTest } from './testing/setup.ts'
import { rejectionOf } from './testing/world.ts'

setupEachTest('a')

/** Encodes texts, save those that are bad. */
const codec: Codec<string> = {
  encode: (value) => {
    if (value === 'bad') throw new Error('the codec of the test')
    return new TextEncoder().encode(value)
  },
  decode: (data) => new TextDecoder().decode(data),
}

const calls: Record<string, (of: Client) => Promise<() => Promise<unknown>>> = {
  'a member that joins': async (of) => () => new Group(of, '/r', { codec }).join('x', 'bad'),
  'a member that updates its value': async (of) => {
    const member = await new Group(of, '/r', { codec }).join('x', 'good')
    return () => member.update('bad')
  },
  'a value': async (of) => () => new AtomicValue(of, '/r', { codec, initial: '' }).set('bad'),
  'a value that is compared': async (of) => {
    const value = new AtomicValue(of, '/r', { codec, initial: '' })
    const read = await value.get()
    return () => value.compareAndSet(read, 'bad')
  },
  'a configuration': async (of) => () => new Configuration(of, '/r', { codec }).set('bad'),
  'an item': async (of) => () => new Queue(of, '/r', { codec }).put('bad'),
  'a name': async (of) => () => new NameService(of, '/r', codec).register('x', 'bad'),
  'a name that is updated': async (of) => {
    const mine = await new NameService(of, '/r', codec).register('x', 'good')
    return () => mine.update('bad')
  },
  'an instance': async (of) => {
    const payload = { encode: (value: string) => codec.encode(value), decode: () => '' }
    const discovery = new ServiceDiscovery<string>(of, '/r', { payload })
    return () => discovery.register({ name: 'x', payload: 'bad' })
  },
  'an instance that is updated': async (of) => {
    const payload = { encode: (value: string) => (codec.encode(value), value), decode: () => '' }
    const registration = await new ServiceDiscovery<string>(of, '/r', { payload }).register({ name: 'x' })
    return () => registration.update({ payload: 'bad' })
  },
}

it.each(Object.entries(calls))('a codec that throws makes the call reject: %s', async (_name, prepare) => {
  const call = await run(prepare(client))
  let result: Promise<unknown> | undefined
  expect(() => (result = call())).not.toThrow()
  const error = await run(rejectionOf(result!))
  expect(error).toBeInstanceOf(CodecError)
  expect(error).toMatchObject({ cause: { message: 'the codec of the test' } })
})
